# Tests of the console. Included by cmake/tests.cmake where libjzx_console is built.
file(GLOB console_support CONFIGURE_DEPENDS console/tests/*.c)
list(FILTER console_support EXCLUDE REGEX "_(unit|test)\\.c$")
add_library(jzt_console STATIC ${console_support})
target_compile_definitions(jzt_console PUBLIC _GNU_SOURCE)
target_include_directories(jzt_console PUBLIC ${PROJECT_SOURCE_DIR}/console/tests)
jzx_add_tests(console console/tests jzt_console jzx_console_twin jzx_twin)
