# libjzx (shared and static from one set of objects), its testing twin, and libjzx_testkit.
file(GLOB JZX_SOURCES CONFIGURE_DEPENDS src/*.c src/base/*.c src/os/*.c)
file(GLOB JZX_TESTKIT_SOURCES CONFIGURE_DEPENDS testkit/*.c)
if(NOT JZX_SOURCES)
    message(FATAL_ERROR "There is no source file under src/.")
endif()

find_package(Threads REQUIRED)
find_package(PkgConfig)

# Everything a target needs that is compiled from, or linked with, the core's sources.
function(jzx_core_target target)
    target_include_directories(${target} PUBLIC
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${target} PRIVATE Threads::Threads)
endfunction()

add_library(jzx_objects OBJECT ${JZX_SOURCES})
set_target_properties(jzx_objects PROPERTIES
    POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
target_compile_options(jzx_objects PRIVATE -fno-semantic-interposition)
jzx_core_target(jzx_objects)

add_library(jzx SHARED $<TARGET_OBJECTS:jzx_objects>)
set_target_properties(jzx PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0 LINKER_LANGUAGE C)
jzx_core_target(jzx)

add_library(jzx_static STATIC $<TARGET_OBJECTS:jzx_objects>)
set_target_properties(jzx_static PROPERTIES OUTPUT_NAME jzx LINKER_LANGUAGE C)
jzx_core_target(jzx_static)

add_library(jzx::jzx ALIAS jzx)
add_library(jzx::jzx_static ALIAS jzx_static)

# The test kit sees the public headers only: include/ is its one include path.
if(JZX_TESTKIT_SOURCES)
    add_library(jzx_testkit_objects OBJECT ${JZX_TESTKIT_SOURCES})
    set_target_properties(jzx_testkit_objects PROPERTIES
        POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
    target_include_directories(jzx_testkit_objects PRIVATE ${PROJECT_SOURCE_DIR}/include)

    add_library(jzx_testkit SHARED $<TARGET_OBJECTS:jzx_testkit_objects>)
    set_target_properties(jzx_testkit PROPERTIES
        VERSION ${PROJECT_VERSION} SOVERSION 0 EXPORT_NAME testkit LINKER_LANGUAGE C)
    target_link_libraries(jzx_testkit PUBLIC jzx)

    add_library(jzx_testkit_static STATIC $<TARGET_OBJECTS:jzx_testkit_objects>)
    set_target_properties(jzx_testkit_static PROPERTIES
        OUTPUT_NAME jzx_testkit EXPORT_NAME testkit_static LINKER_LANGUAGE C)
    target_link_libraries(jzx_testkit_static PUBLIC jzx_static)

    add_library(jzx::testkit ALIAS jzx_testkit)
    add_library(jzx::testkit_static ALIAS jzx_testkit_static)
else()
    message(STATUS "testkit/ is empty: no test kit")
endif()

# What `make install` needs, without tests and programs.
add_custom_target(libraries DEPENDS jzx jzx_static)
if(TARGET jzx_testkit)
    add_dependencies(libraries jzx_testkit jzx_testkit_static)
endif()

# The testing twin: the library's own objects, with private symbols and headers within reach. What is
# tested is what is shipped, and compiled once.
if(JZX_BUILD_TESTS)
    add_library(jzx_twin STATIC $<TARGET_OBJECTS:jzx_objects>)
    set_target_properties(jzx_twin PROPERTIES LINKER_LANGUAGE C)
    jzx_core_target(jzx_twin)
    target_include_directories(jzx_twin PUBLIC ${PROJECT_SOURCE_DIR}/src)
    if(JZX_TESTKIT_SOURCES)
        add_library(jzx_testkit_twin STATIC $<TARGET_OBJECTS:jzx_testkit_objects>)
        set_target_properties(jzx_testkit_twin PROPERTIES LINKER_LANGUAGE C)
        target_link_libraries(jzx_testkit_twin PUBLIC jzx_twin)
    endif()
endif()
