# Tests are found by their place: tests/<folder>/test_*.c, one ctest entry per file, with the folder as
# its label. What a folder may link says what it may see. The files of a folder are one program,
# <build>/tests/<folder>/<folder>_tests FILE [TEST...], because linking each took a fourth of a build;
# test_<name> beside it is a link to it, which runs that file.
#
# A program that runs actors is run on every dispatcher (R31), as <folder>/<name>@<variant> with the
# label on_<variant>; JZX_DISPATCHER tells its loops what to be. One that cannot says so in a comment
# with the reason: "not on: pinned pool", "not on: pool2 pool4"; pool stands for all three.
set(JZX_VARIANTS pinned pool1 pool2 pool4)
set(JZX_VARIANT_FOLDERS contract api sim fault thread)

# The model checks are long; on a variant they play the first of the seeds they always play.
set(JZX_LIGHTER_sim_model JZX_MODEL_OPS=200000)
set(JZX_LIGHTER_sim_sup_model JZX_MODEL_SEEDS=1500 JZX_SEED=1)

# What plays many seeds has a second entry, <folder>/<name>@long with the label long, which plays those
# that the first leaves out. `make check` runs both, `make test` the first. A sanitizer's build plays
# fewer by itself.
set(JZX_SHORT_manifest_model JZX_SEED=1 JZX_MODEL_SEEDS=1000)
set(JZX_REST_manifest_model JZX_SEED=1001 JZX_MODEL_SEEDS=4000)
set(JZX_SHORT_manifest_model_crowd JZX_SEED=1 JZX_MODEL_SEEDS=1000)
set(JZX_REST_manifest_model_crowd JZX_SEED=1001 JZX_MODEL_SEEDS=4000)
set(JZX_SHORT_manifest_flips JZX_FLIP_STEP=7)
set(JZX_REST_manifest_flips JZX_FLIP_STEP=1)
set(JZX_SHORT_manifest_flips_live JZX_FLIP_STEP=7)
set(JZX_REST_manifest_flips_live JZX_FLIP_STEP=1)
set(JZX_SHORT_sim_sup_model JZX_SEED=1 JZX_MODEL_SEEDS=3000)
set(JZX_REST_sim_sup_model JZX_SEED=3001 JZX_MODEL_SEEDS=9000)

# What takes longest starts first (on a fresh tree ctest knows no times), so that no processor waits
# for the last one.
set(JZX_LONG 20)
function(jzx_long_first name)
    if(name MATCHES "^(manifest/(model|flips|kill9|store_damage|queue_model)|contract/(system_shutdown|sup_race|idle)|fault/sweep_calls|sim/(sup_)?model|console/limits)")
        set_tests_properties(${name} PROPERTIES COST ${JZX_LONG})
    endif()
endfunction()

# The variants on which a test can run.
function(jzx_find_variants source out)
    set(left ${JZX_VARIANTS})
    file(STRINGS ${source} lines REGEX "not on:")
    foreach(line ${lines})
        string(REGEX REPLACE ".*not on:(( +(pinned|pool[0-9]*))*).*" "\\1" words "${line}")
        string(REGEX MATCHALL "[a-z0-9]+" words "${words}")
        if(NOT words)
            message(FATAL_ERROR "${source}: not on what? ${line}")
        endif()
        foreach(word ${words})
            if(word STREQUAL "pool")
                list(REMOVE_ITEM left pool1 pool2 pool4)
            elseif(word IN_LIST JZX_VARIANTS)
                list(REMOVE_ITEM left ${word})
            else()
                message(FATAL_ERROR "${source}: there is no variant ${word}")
            endif()
        endforeach()
    endforeach()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    set(${out} ${left} PARENT_SCOPE)
endfunction()

function(jzx_add_variants folder short program source)
    jzx_find_variants(${source} variants)
    if(NOT pool4 IN_LIST variants)
        set_property(TEST ${folder}/${short} APPEND PROPERTY LABELS not_on_pool4)
    endif()
    foreach(variant ${variants})
        string(REGEX REPLACE "^pool" "pool:" dispatcher ${variant})
        set(name ${folder}/${short}@${variant})
        add_test(NAME ${name} COMMAND ${program})
        set_tests_properties(${name} PROPERTIES
            TIMEOUT ${JZX_TEST_TIMEOUT} LABELS on_${variant} SKIP_RETURN_CODE 77
            ENVIRONMENT "JZX_DISPATCHER=${dispatcher};${JZX_LIGHTER_${folder}_${short}}")
        jzx_long_first(${name})
    endforeach()
endfunction()

# Whether a test cannot share a program: it defines functions of libc or lmdb, which all would get then,
# or starts itself again. It says so in a comment with the reason: "program of its own: ...".
function(jzx_wants_own_program source out)
    file(STRINGS ${source} lines REGEX "program of its own:")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    if(lines)
        set(${out} TRUE PARENT_SCOPE)
    else()
        set(${out} FALSE PARENT_SCOPE)
    endif()
endfunction()

# jzx_add_test_program(target name folder sources libraries...): an executable in <build>/tests/<folder>.
function(jzx_add_test_program target name folder sources)
    add_executable(${target} ${sources})
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/${folder})
    target_link_libraries(${target} PRIVATE jzt_support ${ARGN} Threads::Threads)
    # Half of a sanitizer's build went into optimizing tests; the library stays optimized.
    if(JZX_SANITIZE)
        target_compile_options(${target} PRIVATE -O0)
    endif()
endfunction()

# jzx_add_tests(folder place library...): the tests of a folder, which is at place in the sources.
# Target and program are <folder>_tests; programs of their own are built with it.
function(jzx_add_tests folder place)
    file(GLOB sources CONFIGURE_DEPENDS ${place}/test_*.c)
    if(NOT TARGET jzx_client)
        list(FILTER sources EXCLUDE REGEX "/contract/test_control_doctor[^/]*$")
    endif()
    set(binaries ${PROJECT_BINARY_DIR}/tests/${folder})
    file(MAKE_DIRECTORY ${binaries})
    set(together "")
    set(alone "")
    set(JZX_FILES "")
    set(JZX_DECLARATIONS "")
    foreach(source ${sources})
        get_filename_component(name ${source} NAME_WE)
        string(REGEX REPLACE "^test_" "" short ${name})
        jzx_wants_own_program(${source} own)
        if(own)
            # Where the link was, the linker would write what it points to.
            if(IS_SYMLINK ${binaries}/${name})
                file(REMOVE ${binaries}/${name})
            endif()
            jzx_add_test_program(${folder}_${name} ${name} ${folder} ${source} ${ARGN})
            list(APPEND alone ${folder}_${name})
        else()
            set(entry jzt_main_${folder}_${short})
            list(APPEND together ${source})
            set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS JZT_MAIN=${entry})
            string(APPEND JZX_DECLARATIONS "int ${entry}(int argc, char **argv);\n")
            string(APPEND JZX_FILES "    {\"${short}\", ${entry}},\n")
            file(CREATE_LINK ${folder}_tests ${binaries}/${name} SYMBOLIC)
        endif()
        add_test(NAME ${folder}/${short} COMMAND ${binaries}/${name})
        set_tests_properties(${folder}/${short} PROPERTIES
            TIMEOUT ${JZX_TEST_TIMEOUT} LABELS ${folder} SKIP_RETURN_CODE 77)
        if(DEFINED JZX_SHORT_${folder}_${short} AND NOT JZX_SANITIZE)
            set(rest ${folder}/${short}@long)
            add_test(NAME ${rest} COMMAND ${binaries}/${name})
            set_tests_properties(${folder}/${short} PROPERTIES
                ENVIRONMENT "${JZX_SHORT_${folder}_${short}}")
            set_tests_properties(${rest} PROPERTIES TIMEOUT ${JZX_TEST_TIMEOUT} LABELS long
                SKIP_RETURN_CODE 77 COST 40 ENVIRONMENT "${JZX_REST_${folder}_${short}}")
        endif()
        # Of the manifest's tests, those with threads of their own are for the thread sanitizer.
        file(STRINGS ${source} threads REGEX "#include <pthread.h>")
        if(folder STREQUAL "manifest" AND threads)
            set_property(TEST ${folder}/${short} APPEND PROPERTY LABELS manifest_threads)
        endif()
        jzx_long_first(${folder}/${short})
        # It waits for five seconds in which nothing must happen: nothing for a sanitizer to look at.
        if("${folder}/${short}" STREQUAL "contract/idle")
            set_property(TEST ${folder}/${short} APPEND PROPERTY LABELS waits)
        endif()
        if(folder IN_LIST JZX_VARIANT_FOLDERS)
            jzx_add_variants(${folder} ${short} ${binaries}/${name} ${source})
        endif()
    endforeach()
    set(table ${PROJECT_BINARY_DIR}/tests/${folder}_tests.c)
    configure_file(${PROJECT_SOURCE_DIR}/tests/support/program.c.in ${table} @ONLY)
    jzx_add_test_program(${folder}_tests ${folder}_tests ${folder} "${together};${table}" ${ARGN})
    if(alone)
        add_dependencies(${folder}_tests ${alone})
    endif()
endfunction()

function(jzx_add_fuzzers)
    file(GLOB sources CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
    foreach(source ${sources})
        get_filename_component(name ${source} NAME_WE)
        add_executable(${name} ${source})
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
        target_link_libraries(${name} PRIVATE jzx_testkit_twin jzx_twin)
        if(TARGET jzx_manifest_twin)
            target_link_libraries(${name} PRIVATE jzx_manifest_twin)
        endif()
        # What a run finds goes to the build tree; the inputs we keep are only read.
        set(found ${PROJECT_BINARY_DIR}/corpus/${name})
        file(MAKE_DIRECTORY ${found})
        set(kept ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
        if(NOT IS_DIRECTORY ${kept})
            set(kept "")
        endif()
        add_test(NAME fuzz/${name} COMMAND ${name}
            -runs=1000000 -max_total_time=60 -timeout=10 ${found} ${kept})
        set_tests_properties(fuzz/${name} PROPERTIES TIMEOUT ${JZX_TEST_TIMEOUT} LABELS fuzz)
    endforeach()
endfunction()

if(JZX_FUZZ)
    jzx_add_fuzzers()
    return()
endif()

file(GLOB support_sources CONFIGURE_DEPENDS tests/support/*.c)
add_library(jzt_support STATIC ${support_sources})
target_include_directories(jzt_support
    PUBLIC ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/tests/support
    PRIVATE ${PROJECT_SOURCE_DIR}/core/include)

if(TARGET jzx_testkit)
    set(kit jzx_testkit_twin)
    jzx_add_tests(api tests/api jzx_testkit jzx)
endif()
jzx_add_tests(unit tests/unit jzx_twin)
foreach(folder contract sim fault thread)
    jzx_add_tests(${folder} tests/${folder} ${kit} jzx_twin)
endforeach()
# What the facts of a program mean is decided in its clients.
if(TARGET jzx_client)
    target_link_libraries(contract_test_control_doctor PRIVATE jzx_client)
    target_link_libraries(contract_test_control_doctor_specs PRIVATE jzx_client)
endif()

if(TARGET jzx_manifest_twin)
    jzx_add_tests(manifest tests/manifest jzx_manifest_twin ${kit} jzx_twin)
    include(tests/manifest/kill9/kill9.cmake)
    include(cmake/crashlab.cmake)
endif()

if(TARGET jzx-command)
    include(tests/command/command.cmake)
endif()
if(TARGET jzx-command)
    include(cmake/terminal.cmake)
endif()
if(TARGET jzx_console_twin)
    include(tests/console/console.cmake)
endif()

# The rest looks at sources and packages, so one plain build is enough for it.
if(JZX_SANITIZE OR JZX_COVERAGE)
    return()
endif()

include(cmake/browser.cmake)

function(jzx_add_script name label script)
    add_test(NAME ${name} COMMAND sh ${PROJECT_SOURCE_DIR}/${script} ${ARGN}
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${JZX_TEST_TIMEOUT} LABELS ${label} SKIP_RETURN_CODE 77)
endfunction()

jzx_add_script(tidy tidy tools/tidy)
jzx_add_script(tidy/samples tidy tests/tidy/run.sh)
jzx_add_script(tools/deps tools tests/tools/deps.sh)
jzx_add_script(tools/lint tools tests/tools/lint.sh)
jzx_add_script(tools/browser_deps tools tests/tools/browser_deps.sh)
jzx_add_script(abi/headers_gcc headers tests/abi/headers.sh gcc g++)
jzx_add_script(abi/headers_clang headers tests/abi/headers.sh clang clang++)
jzx_add_script(abi/protocol_gcc headers tests/abi/protocol_refused.sh gcc g++)
jzx_add_script(abi/protocol_clang headers tests/abi/protocol_refused.sh clang clang++)
jzx_add_script(abi/sizes abi tests/abi/sizes.sh ${CMAKE_C_COMPILER})
jzx_add_script(abi/man abi tests/abi/man_signatures.sh ${CMAKE_C_COMPILER})
# Only what changed since it passed in this build folder.
jzx_add_script(models models tests/models/run.sh --kept ${PROJECT_BINARY_DIR}/models.sha256)
# These were last, and the other processor waited for them.
set_tests_properties(models PROPERTIES COST 30)
set_tests_properties(tidy tidy/samples abi/headers_clang abi/headers_gcc browser/console PROPERTIES
    COST ${JZX_LONG})
jzx_add_script(abi/symbols abi tests/abi/symbols.sh
    $<TARGET_FILE:jzx> tests/abi/symbols.txt ${JZX_HEADERS})
if(TARGET jzx_testkit)
    jzx_add_script(abi/testkit_symbols abi tests/abi/symbols.sh
        $<TARGET_FILE:jzx_testkit> tests/abi/symbols_testkit.txt testkit/include/jzx/testkit.h)
endif()
if(TARGET jzx_manifest)
    jzx_add_script(abi/manifest_symbols abi tests/abi/symbols.sh
        $<TARGET_FILE:jzx_manifest> tests/abi/symbols_manifest.txt ${JZX_MANIFEST_HEADERS})
endif()
if(TARGET jzx-command AND TARGET jzx_manifest)
    jzx_add_script(manifest/command manifest tests/manifest/command.sh
        $<TARGET_FILE:jzx-command> ${PROJECT_BINARY_DIR}/tests/manifest/test_sample)
endif()
if(TARGET jzx_console)
    jzx_add_script(abi/console_symbols abi tests/abi/symbols.sh
        $<TARGET_FILE:jzx_console> tests/abi/symbols_console.txt ${JZX_CONSOLE_HEADERS})
endif()
if(TARGET jzx_console AND TARGET jzx-command)
    jzx_add_script(console/command console tests/console/command.sh
        $<TARGET_FILE:jzx-command> $<TARGET_FILE:example_supervised_tcp>)
endif()
jzx_add_script(install install tests/install/run.sh ${PROJECT_BINARY_DIR})
if(TARGET example_flapping)
    jzx_add_script(probes probes tests/probes/run.sh
        $<TARGET_FILE:jzx> $<TARGET_FILE:example_flapping>)
endif()
