# crashlab: crashes and failing disks under the manifest (docs/internals/CRASHLAB.md). One program, which is
# recorder, workload and judge. It defines write(), fsync() and their kin for liblmdb to find, so its
# symbols are exported; the sanitizers want these calls for themselves.
if(NOT TARGET jzx_manifest_twin OR JZX_SANITIZE OR JZX_FUZZ)
    return()
endif()

file(GLOB crashlab_sources CONFIGURE_DEPENDS manifest/tests/crashlab/*.c)
add_executable(crashlab ${crashlab_sources})
set_target_properties(crashlab PROPERTIES
    ENABLE_EXPORTS ON RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/crashlab)
target_compile_definitions(crashlab PRIVATE _GNU_SOURCE)
target_link_libraries(crashlab PRIVATE
    jzx_manifest_twin jzx_testkit_twin jzx_twin lmdb Threads::Threads)
# All mutants and faults, and a fourth of the states; @long has all states.
add_test(NAME crashlab COMMAND crashlab --states 4000)
add_test(NAME crashlab@long COMMAND crashlab)
set_tests_properties(crashlab PROPERTIES LABELS crashlab)
set_tests_properties(crashlab@long PROPERTIES LABELS long)
set_tests_properties(crashlab crashlab@long PROPERTIES
    TIMEOUT ${JZX_TEST_TIMEOUT} SKIP_RETURN_CODE 77 COST ${JZX_LONG})
