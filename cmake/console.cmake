# libjzx_console (on libjzx, libmicrohttpd and jansson) and its testing twin. The page is part of the library:
# cmake/console_page.cmake turns console/page/* into C. Without those two there is none of it.
option(JZX_CONSOLE "Build libjzx_console when libmicrohttpd is found" ON)
if(NOT JZX_CONSOLE OR JZX_FUZZ)
    return()
endif()
if(PkgConfig_FOUND)
    pkg_check_modules(MICROHTTPD QUIET IMPORTED_TARGET libmicrohttpd>=0.9.73)
endif()
if(NOT MICROHTTPD_FOUND)
    message(STATUS "libmicrohttpd is missing (Debian: libmicrohttpd-dev): no console")
    return()
endif()
if(NOT TARGET jzx_client)
    message(STATUS "jansson is missing (Debian: libjansson-dev): no console")
    return()
endif()

file(GLOB JZX_CONSOLE_SOURCES CONFIGURE_DEPENDS console/*.c)
file(GLOB JZX_CONSOLE_PAGE CONFIGURE_DEPENDS
    console/page/*.html console/page/*.css console/page/*.js)
set(page_c ${PROJECT_BINARY_DIR}/console_page.c)
add_custom_command(OUTPUT ${page_c}
    COMMAND ${CMAKE_COMMAND} "-DOUTPUT=${page_c}" "-DFOLDER=${PROJECT_SOURCE_DIR}/console/page"
        -P ${PROJECT_SOURCE_DIR}/cmake/console_page.cmake
    DEPENDS ${JZX_CONSOLE_PAGE} ${PROJECT_SOURCE_DIR}/cmake/console_page.cmake VERBATIM)

# The console sees the public headers of libjzx only. libmicrohttpd and jansson are linked by name, so
# that the installed package need not look for them.
function(jzx_console_target target core)
    target_include_directories(${target} PUBLIC
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/console/include>
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_link_libraries(${target} PUBLIC ${core} PRIVATE microhttpd jansson Threads::Threads)
    target_link_directories(${target} PRIVATE ${MICROHTTPD_LIBRARY_DIRS} ${JANSSON_LIBRARY_DIRS})
endfunction()

add_library(jzx_console_objects OBJECT ${JZX_CONSOLE_SOURCES} ${page_c})
set_target_properties(jzx_console_objects PROPERTIES
    POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
target_compile_definitions(jzx_console_objects PRIVATE _GNU_SOURCE)
target_include_directories(jzx_console_objects PRIVATE console/include include console cmd/client)
target_include_directories(jzx_console_objects SYSTEM PRIVATE ${MICROHTTPD_INCLUDE_DIRS}
    ${JANSSON_INCLUDE_DIRS})

add_library(jzx_console SHARED $<TARGET_OBJECTS:jzx_console_objects>
    $<TARGET_OBJECTS:jzx_client>)
set_target_properties(jzx_console PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION 0 EXPORT_NAME console LINKER_LANGUAGE C)
jzx_console_target(jzx_console jzx)
add_library(jzx_console_static STATIC $<TARGET_OBJECTS:jzx_console_objects>
    $<TARGET_OBJECTS:jzx_client>)
set_target_properties(jzx_console_static PROPERTIES
    OUTPUT_NAME jzx_console EXPORT_NAME console_static LINKER_LANGUAGE C)
jzx_console_target(jzx_console_static jzx_static)
add_library(jzx::console ALIAS jzx_console)
add_library(jzx::console_static ALIAS jzx_console_static)
add_dependencies(libraries jzx_console jzx_console_static)

if(JZX_BUILD_TESTS)
    add_library(jzx_console_twin STATIC $<TARGET_OBJECTS:jzx_console_objects>
    $<TARGET_OBJECTS:jzx_client>)
    set_target_properties(jzx_console_twin PROPERTIES LINKER_LANGUAGE C)
    jzx_console_target(jzx_console_twin jzx_twin)
    target_include_directories(jzx_console_twin PUBLIC ${PROJECT_SOURCE_DIR}/console
        ${PROJECT_SOURCE_DIR}/cmd/client)
endif()
