# Tests of the console. Included by cmake/tests.cmake where libjzx_console is built.
file(GLOB console_support CONFIGURE_DEPENDS tests/console/*.c)
list(FILTER console_support EXCLUDE REGEX "/test_[^/]*\\.c$")
add_library(jzt_console STATIC ${console_support})
target_compile_definitions(jzt_console PUBLIC _GNU_SOURCE)
target_include_directories(jzt_console PUBLIC ${PROJECT_SOURCE_DIR}/tests/console)
jzx_add_tests(console tests/console jzt_console jzx_console_twin jzx_twin)
