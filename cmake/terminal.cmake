# Tests of what `jzx` shows on terminals: the pure parts of `jzx top` as programs, and all views in
# tmux at two sizes. The screens they saw are kept in screens/ of the build tree.
if(NOT TARGET jzx-command)
    return()
endif()
add_custom_target(terminal_tests)

set(top_parts text canvas model program view page state draw)
list(TRANSFORM top_parts PREPEND ${PROJECT_SOURCE_DIR}/cmd/jzx/top_)
list(TRANSFORM top_parts APPEND .c)
add_library(jzt_top STATIC ${top_parts} ${PROJECT_SOURCE_DIR}/cmd/jzx/text.c)
target_compile_definitions(jzt_top PUBLIC _GNU_SOURCE)
target_include_directories(jzt_top PUBLIC cmd/jzx)
target_link_libraries(jzt_top PUBLIC PkgConfig::JANSSON)
jzx_add_tests(terminal jzt_top jzx_static)
