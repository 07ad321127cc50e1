# jzx as a client of running programs; included by cmake/tests.cmake where the command is built.
function(jzx_command_program name)
    add_executable(command_${name} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${name}.c)
    set_target_properties(command_${name} PROPERTIES
        OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/command)
    target_compile_definitions(command_${name} PRIVATE _GNU_SOURCE)
    target_link_libraries(command_${name} PRIVATE ${ARGN})
endfunction()

# jzx_command_test(kind name arguments-of-the-test;... library...)
function(jzx_command_test kind name arguments)
    jzx_command_program(${name} jzt_support ${ARGN})
    jzx_in_groups(command_${name} command ${kind})
    add_test(NAME command/${name} COMMAND command_${name} ${arguments})
    set_tests_properties(command/${name} PROPERTIES TIMEOUT ${JZX_TEST_TIMEOUT} LABELS "${kind};command")
endfunction()

jzx_command_test(test nonsense_test $<TARGET_FILE:jzx-command> jzx_static)
jzx_command_test(unit parts_unit "" jzx_static PkgConfig::JANSSON)
target_sources(command_parts_unit PRIVATE cmd/jzx/text.c cmd/jzx/perfetto.c)
target_include_directories(command_parts_unit PRIVATE cmd/jzx cmd/client)
# What facts mean, without a program.
jzx_command_test(unit doctor_unit "" jzx_static jzx_client)
jzx_command_test(unit circles_unit "" jzx_static jzx_client)

jzx_command_program(fixture jzx_static Threads::Threads)
target_compile_options(command_fixture PRIVATE -g)
# Some 300 calls of jzx are too slow for sanitizers to be of use here; nonsense has them for that.
if(NOT JZX_SANITIZE)
    add_test(NAME command/views COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/views.sh
        $<TARGET_FILE:jzx-command> $<TARGET_FILE:command_fixture>)
    add_test(NAME command/completion COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/completion.sh
        $<TARGET_FILE:jzx-command> $<TARGET_FILE:command_fixture>
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(command/views command/completion PROPERTIES
        TIMEOUT ${JZX_TEST_TIMEOUT} LABELS command SKIP_RETURN_CODE 77 COST ${JZX_LONG})
endif()
