# jzx as a client of running programs; included by cmake/tests.cmake where the command is built.
function(jzx_command_program name)
    add_executable(command_${name} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${name}.c)
    set_target_properties(command_${name} PROPERTIES
        OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/command)
    target_compile_definitions(command_${name} PRIVATE _GNU_SOURCE)
    target_link_libraries(command_${name} PRIVATE ${ARGN})
endfunction()

jzx_command_program(nonsense jzt_support jzx_static)
add_test(NAME command/nonsense COMMAND command_nonsense $<TARGET_FILE:jzx-command>)
set_tests_properties(command/nonsense PROPERTIES TIMEOUT ${JZX_TEST_TIMEOUT} LABELS command)

jzx_command_program(parts jzt_support jzx_static PkgConfig::JANSSON)
target_sources(command_parts PRIVATE cmd/jzx/text.c cmd/jzx/perfetto.c)
target_include_directories(command_parts PRIVATE cmd/jzx cmd/client)
add_test(NAME command/parts COMMAND command_parts)
set_tests_properties(command/parts PROPERTIES TIMEOUT ${JZX_TEST_TIMEOUT} LABELS command)

# What facts mean, without a program.
foreach(name doctor circles)
    jzx_command_program(${name} jzt_support jzx_static jzx_client)
    add_test(NAME command/${name} COMMAND command_${name})
    set_tests_properties(command/${name} PROPERTIES TIMEOUT ${JZX_TEST_TIMEOUT} LABELS command)
endforeach()

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
