# jzx-bench-manifest: the manifest beside raw LMDB and SQLite. Built with `make bench` or when asked
# for; sanitizers and counters would only measure themselves.
if(NOT TARGET jzx_manifest_static OR JZX_SANITIZE OR JZX_COVERAGE OR JZX_FUZZ)
    return()
endif()
find_path(SQLITE3_INCLUDE_DIR sqlite3.h)
find_library(SQLITE3_LIBRARY sqlite3)
if(NOT SQLITE3_INCLUDE_DIR OR NOT SQLITE3_LIBRARY)
    message(STATUS "libsqlite3 is missing: no jzx-bench-manifest")
    return()
endif()

file(GLOB bench_manifest_sources CONFIGURE_DEPENDS bench/manifest/*.c)
add_executable(jzx-bench-manifest EXCLUDE_FROM_ALL
    ${bench_manifest_sources} bench/clock.c bench/process.c)
target_compile_definitions(jzx-bench-manifest PRIVATE _GNU_SOURCE)
target_include_directories(jzx-bench-manifest SYSTEM PRIVATE
    ${LMDB_INCLUDE_DIR} ${SQLITE3_INCLUDE_DIR})
target_link_libraries(jzx-bench-manifest PRIVATE
    jzx_manifest_static ${LMDB_LIBRARY} ${SQLITE3_LIBRARY} Threads::Threads m)
