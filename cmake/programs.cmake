# The node that `make run` starts, the tour, the benchmarks and the examples. Fuzzing needs none.
if(JZX_FUZZ)
    return()
endif()

add_custom_target(examples)
file(GLOB tour_sources CONFIGURE_DEPENDS cmd/tour/*.c)
if(tour_sources)
    add_executable(jzx-tour ${tour_sources})
    add_dependencies(examples jzx-tour)
    target_link_libraries(jzx-tour PRIVATE jzx_static Threads::Threads)
    add_test(NAME tour COMMAND jzx-tour)
    set_tests_properties(tour PROPERTIES TIMEOUT ${JZX_TEST_TIMEOUT} LABELS example)
endif()

# The demonstration node crashes on purpose, which a sanitizer would take for itself.
file(GLOB node_sources CONFIGURE_DEPENDS cmd/node/*.c)
if(node_sources AND NOT JZX_SANITIZE)
    add_executable(jzx-node ${node_sources})
    # Its functions have their names in backtraces.
    set_target_properties(jzx-node PROPERTIES ENABLE_EXPORTS ON)
    target_compile_definitions(jzx-node PRIVATE NODE_CONSOLE=$<BOOL:$<TARGET_EXISTS:jzx_console>>)
    target_link_libraries(jzx-node PRIVATE jzx_static Threads::Threads)
    if(TARGET jzx_console)
        target_link_libraries(jzx-node PRIVATE jzx_console_static)
    endif()
    add_test(NAME node COMMAND sh ${PROJECT_SOURCE_DIR}/tests/node/run.sh $<TARGET_FILE:jzx-node>
        $<$<TARGET_EXISTS:jzx-command>:$<TARGET_FILE:jzx-command>>)
    set_tests_properties(node PROPERTIES TIMEOUT ${JZX_TEST_TIMEOUT} LABELS node SKIP_RETURN_CODE 77)
endif()

# Sanitizers and counters would only measure themselves.
file(GLOB bench_sources CONFIGURE_DEPENDS bench/*.c)
if(bench_sources AND NOT JZX_SANITIZE AND NOT JZX_COVERAGE)
    add_executable(jzx-bench ${bench_sources})
    target_link_libraries(jzx-bench PRIVATE jzx_static Threads::Threads m)
    if(JZX_DEBUG)
        add_test(NAME bench-smoke
            COMMAND sh ${PROJECT_SOURCE_DIR}/tests/tools/bench.sh $<TARGET_FILE:jzx-bench>)
        set_tests_properties(bench-smoke PROPERTIES TIMEOUT ${JZX_TEST_TIMEOUT} LABELS bench-smoke)
    endif()
endif()

if(NOT JZX_SANITIZE AND NOT JZX_COVERAGE)
    file(GLOB watched_sources CONFIGURE_DEPENDS bench/watched/*.c)
    add_executable(jzx-bench-watched ${watched_sources})
    target_link_libraries(jzx-bench-watched PRIVATE jzx_static Threads::Threads m)
endif()

include(cmake/bench_manifest.cmake)

# An example says how it is run by what lies beside it: name.sh drives it, name.expected is what it
# prints, and with neither it only has to succeed.
function(jzx_add_example source)
    get_filename_component(name ${source} NAME_WE)
    set(target example_${name})
    if(name MATCHES "_test$" AND NOT TARGET jzx_testkit)
        message(STATUS "examples/${name}.c needs the test kit: skipped")
        return()
    endif()
    if(name STREQUAL "manifest" AND NOT TARGET jzx_manifest)
        return()
    endif()
    if(name STREQUAL "console" AND NOT TARGET jzx_console)
        message(STATUS "examples/console.c needs libmicrohttpd: skipped")
        return()
    endif()
    if(name STREQUAL "embed_uv" AND NOT TARGET PkgConfig::UV)
        message(STATUS "examples/embed_uv.c needs libuv: skipped")
        return()
    endif()

    add_executable(${target} ${source})
    add_dependencies(examples ${target})
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
    target_link_libraries(${target} PRIVATE jzx Threads::Threads)
    if(name MATCHES "_test$")
        target_link_libraries(${target} PRIVATE jzx_testkit)
    endif()
    if(name STREQUAL "manifest")
        target_link_libraries(${target} PRIVATE jzx_manifest)
    endif()
    if(name STREQUAL "console")
        target_link_libraries(${target} PRIVATE jzx_console)
    endif()
    if(name STREQUAL "embed_uv")
        target_link_libraries(${target} PRIVATE PkgConfig::UV)
    endif()

    set(beside ${PROJECT_SOURCE_DIR}/examples/${name})
    if(EXISTS ${beside}.sh)
        add_test(NAME example/${name} COMMAND sh ${beside}.sh $<TARGET_FILE:${target}>)
    elseif(EXISTS ${beside}.expected)
        add_test(NAME example/${name} COMMAND sh ${PROJECT_SOURCE_DIR}/tools/expect
            ${beside}.expected $<TARGET_FILE:${target}>)
    else()
        add_test(NAME example/${name} COMMAND ${target})
    endif()
    set_tests_properties(example/${name} PROPERTIES
        TIMEOUT ${JZX_TEST_TIMEOUT} LABELS example SKIP_RETURN_CODE 77)
endfunction()

if(PkgConfig_FOUND)
    pkg_check_modules(UV QUIET IMPORTED_TARGET libuv)
endif()
file(GLOB example_sources CONFIGURE_DEPENDS examples/*.c)
foreach(source ${example_sources})
    jzx_add_example(${source})
endforeach()

# The larger example: a chat server, and the load generator that checks it.
file(GLOB chat_load_sources CONFIGURE_DEPENDS examples/chat/load*.c)
file(GLOB chat_sources CONFIGURE_DEPENDS examples/chat/*.c)
list(REMOVE_ITEM chat_sources ${chat_load_sources})
add_executable(example_chat ${chat_sources})
add_executable(example_chat_load ${chat_load_sources} examples/chat/lines.c)
foreach(name chat chat_load)
    set_target_properties(example_${name} PROPERTIES
        OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
    target_link_libraries(example_${name} PRIVATE jzx Threads::Threads)
    add_dependencies(examples example_${name})
endforeach()
function(jzx_add_chat_test name)
    add_test(NAME ${name} COMMAND sh ${PROJECT_SOURCE_DIR}/examples/chat/run.sh
        $<TARGET_FILE:example_chat> $<TARGET_FILE:example_chat_load> ${ARGN})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${JZX_TEST_TIMEOUT} LABELS example)
endfunction()
jzx_add_chat_test(example/chat)
jzx_add_chat_test(example/chat_pool --pool 2)

# The example of the manifest: a thumbnailer that survives kill -9.
if(TARGET jzx_manifest)
    file(GLOB thumbnailer_sources CONFIGURE_DEPENDS examples/thumbnailer/*.c)
    add_executable(example_thumbnailer ${thumbnailer_sources})
    set_target_properties(example_thumbnailer PROPERTIES
        OUTPUT_NAME thumbnailer RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
    target_compile_definitions(example_thumbnailer PRIVATE _GNU_SOURCE)
    target_link_libraries(example_thumbnailer PRIVATE jzx_manifest jzx Threads::Threads)
    add_dependencies(examples example_thumbnailer)
    add_test(NAME example/thumbnailer COMMAND sh ${PROJECT_SOURCE_DIR}/examples/thumbnailer/run.sh
        $<TARGET_FILE:example_thumbnailer>)
    set_tests_properties(example/thumbnailer PROPERTIES TIMEOUT ${JZX_TEST_TIMEOUT} LABELS example)
endif()
