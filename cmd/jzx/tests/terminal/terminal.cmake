# Tests of what `jzx` shows on terminals: the pure parts of `jzx top` as programs, and all views in
# tmux at two sizes. The screens they saw are kept in screens/ of the build tree.
set(top_parts text canvas model program view page state draw)
list(TRANSFORM top_parts PREPEND ${PROJECT_SOURCE_DIR}/cmd/jzx/top_)
list(TRANSFORM top_parts APPEND .c)
add_library(jzt_top STATIC ${top_parts} ${PROJECT_SOURCE_DIR}/cmd/jzx/text.c
    $<TARGET_OBJECTS:jzx_client>)
target_compile_definitions(jzt_top PUBLIC _GNU_SOURCE)
target_include_directories(jzt_top PUBLIC cmd/jzx cmd/client)
target_link_libraries(jzt_top PUBLIC PkgConfig::JANSSON)
jzx_add_tests(terminal cmd/jzx/tests/terminal jzt_top jzx_static)

# What the views look at.
add_executable(terminal_fixture cmd/jzx/tests/terminal/fixture.c)
target_compile_definitions(terminal_fixture PRIVATE _GNU_SOURCE)
set_target_properties(terminal_fixture PROPERTIES
    OUTPUT_NAME fixture RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/terminal)
target_link_libraries(terminal_fixture PRIVATE jzx_static Threads::Threads)
add_dependencies(room-terminal terminal_fixture)

# Terminals are about screens, not about memory: one plain build is enough.
if(JZX_SANITIZE OR JZX_COVERAGE)
    return()
endif()
foreach(script top top_ends views)
    add_test(NAME terminal/${script}.sh COMMAND sh ${PROJECT_SOURCE_DIR}/cmd/jzx/tests/terminal/${script}.sh
        $<TARGET_FILE:jzx-command> $<TARGET_FILE:terminal_fixture> ${PROJECT_BINARY_DIR}/screens)
    set_tests_properties(terminal/${script}.sh PROPERTIES
        TIMEOUT ${JZX_TEST_TIMEOUT} LABELS terminal SKIP_RETURN_CODE 77)
endforeach()

# The pictures of the docs are screens that these tests saw: `cmake --build build/dev -t screenshots`.
add_custom_target(screenshots
    COMMAND ${CMAKE_CTEST_COMMAND} -R "^terminal/.*\\.sh$" --output-on-failure
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_SOURCE_DIR}/docs/img
    VERBATIM)
foreach(pair top-80x24:top top-stuck:top-stuck top-actor-80x24:top-actor tree-80x40:tree
        stuck-80x40:stuck)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 from)
    list(GET pair 1 to)
    add_custom_command(TARGET screenshots POST_BUILD COMMAND ${CMAKE_COMMAND} -E copy
        ${PROJECT_BINARY_DIR}/screens/${from}.svg ${PROJECT_SOURCE_DIR}/docs/img/${to}.svg)
endforeach()
add_dependencies(screenshots jzx-command terminal_fixture)
