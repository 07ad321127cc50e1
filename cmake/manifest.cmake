# libjzx_manifest (on libjzx and LMDB) and its testing twin. Without liblmdb there is none of it, and no
# `jzx manifest`: -DJZX_MANIFEST=OFF says so on purpose.
option(JZX_MANIFEST "Build libjzx_manifest (needs liblmdb)" ON)
if(NOT JZX_MANIFEST)
    return()
endif()
find_path(LMDB_INCLUDE_DIR lmdb.h)
find_library(LMDB_LIBRARY lmdb)
if(NOT LMDB_INCLUDE_DIR OR NOT LMDB_LIBRARY)
    message(FATAL_ERROR "liblmdb is missing (Debian: liblmdb-dev); -DJZX_MANIFEST=OFF builds without.")
endif()

file(GLOB MANIFEST_SOURCES CONFIGURE_DEPENDS manifest/src/*.c)

# The manifest sees the public headers of libjzx only: include/ and its own two folders.
function(jzx_manifest_target target core)
    target_include_directories(${target} PUBLIC
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/manifest/include>
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/manifest/src)
    target_include_directories(${target} SYSTEM PRIVATE ${LMDB_INCLUDE_DIR})
    target_link_libraries(${target} PUBLIC ${core} PRIVATE lmdb Threads::Threads m)
endfunction()

add_library(jzx_manifest_objects OBJECT ${MANIFEST_SOURCES})
set_target_properties(jzx_manifest_objects PROPERTIES
    POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
target_compile_definitions(jzx_manifest_objects PRIVATE _GNU_SOURCE)
target_include_directories(jzx_manifest_objects
    PRIVATE manifest/include include manifest/src)
target_include_directories(jzx_manifest_objects SYSTEM PRIVATE ${LMDB_INCLUDE_DIR})

add_library(jzx_manifest SHARED $<TARGET_OBJECTS:jzx_manifest_objects>)
set_target_properties(jzx_manifest PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION 0 EXPORT_NAME manifest LINKER_LANGUAGE C)
jzx_manifest_target(jzx_manifest jzx)
add_library(jzx_manifest_static STATIC $<TARGET_OBJECTS:jzx_manifest_objects>)
set_target_properties(jzx_manifest_static PROPERTIES
    OUTPUT_NAME jzx_manifest EXPORT_NAME manifest_static LINKER_LANGUAGE C)
jzx_manifest_target(jzx_manifest_static jzx_static)
add_library(jzx::manifest ALIAS jzx_manifest)
add_library(jzx::manifest_static ALIAS jzx_manifest_static)
add_dependencies(libraries jzx_manifest jzx_manifest_static)

if(JZX_BUILD_TESTS)
    add_library(jzx_manifest_twin STATIC $<TARGET_OBJECTS:jzx_manifest_objects>)
    set_target_properties(jzx_manifest_twin PROPERTIES LINKER_LANGUAGE C)
    target_compile_definitions(jzx_manifest_twin PUBLIC _GNU_SOURCE)
    jzx_manifest_target(jzx_manifest_twin jzx_twin)
    target_include_directories(jzx_manifest_twin PUBLIC ${PROJECT_SOURCE_DIR}/manifest/src)
    target_include_directories(jzx_manifest_twin SYSTEM PUBLIC ${LMDB_INCLUDE_DIR})
endif()
