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

# The manifest sees the public headers of libjzx only.
jzx_product(manifest ON jzx SOURCES ${MANIFEST_SOURCES}
    LINK lmdb m SYSTEM ${LMDB_INCLUDE_DIR} OPTIONS -D_GNU_SOURCE)
if(TARGET jzx_manifest_twin)
    target_compile_definitions(jzx_manifest_twin PUBLIC _GNU_SOURCE)
endif()
