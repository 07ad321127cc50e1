# The console's page in headless Chromium: console/tests/browser. One test, which is skipped where node, npm
# or chromium is missing. Its pictures are kept in <build>/screenshots. Without the demonstration
# node and the console it is shown with a made-up program only.
set(browser_environment "SHOTS=${PROJECT_BINARY_DIR}/screenshots")
if(TARGET jzx-node AND TARGET jzx-command AND TARGET jzx_console)
    list(APPEND browser_environment
        "JZX_NODE=$<TARGET_FILE:jzx-node>" "JZX_COMMAND=$<TARGET_FILE:jzx-command>")
endif()
jzx_add_kept(browser/console browser "console/page;console/tests/browser" console/tests/browser/run.sh)
set_tests_properties(browser/console browser/console@all PROPERTIES ENVIRONMENT "${browser_environment}")
