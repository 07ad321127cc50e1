# kill -9 with 64 clients; included by cmake/tests.cmake where libjzx_manifest is built.
file(GLOB kill9_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
add_executable(manifest_kill9 ${kill9_sources})
set_target_properties(manifest_kill9 PROPERTIES
    OUTPUT_NAME kill9 RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/manifest)
target_compile_definitions(manifest_kill9 PRIVATE _GNU_SOURCE)
target_link_libraries(manifest_kill9 PRIVATE jzx_manifest_static Threads::Threads)
add_test(NAME manifest/kill9 COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/run.sh
    $<TARGET_FILE:manifest_kill9>)
set_tests_properties(manifest/kill9 PROPERTIES TIMEOUT ${JZX_TEST_TIMEOUT} LABELS manifest)
# Processes that die at once have nothing to tell a sanitizer.
if(JZX_SANITIZE)
    set_property(TEST manifest/kill9 APPEND PROPERTY LABELS heavy)
endif()
add_dependencies(room-manifest manifest_kill9)
