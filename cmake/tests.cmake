# Tests are found by their place and their name. A file <feature>_<kind>.c lies in core/tests/<room>/ or
# in <product>/tests/; its ctest entry is <room>/<feature>_<kind>, or <product>/..., with the labels <kind>
# and <room>. The kinds:
#
#   unit      one module, private symbols in reach; no actors run
#   test      what the library promises, with actors, in simulation or on real loops
#   model     random runs against a plain reference
#   sweep     each allocation, call or bit fails in turn
#   threads   several threads of the test or of the library; for the thread sanitizer
#
# The files of a room and a kind are one program, because linking each took a fourth of a build:
# <build>/tests/<room>/all_<kind> FILE [TEST...]; <feature>_<kind> beside it is a link to it, which runs that
# file. Targets: <room>_<kind> one program, room-<room> and kind-<kind> all of these.
#
# A program that runs actors is run on every dispatcher (R31), as <room>/<name>@<variant> with the
# label on_<variant> as well; JZX_DISPATCHER tells its loops what to be. One that cannot says so in a comment
# with the reason: "not on: pinned pool", "not on: pool2 pool4"; pool stands for all three.
set(JZX_KINDS unit test model sweep threads)
set(JZX_VARIANTS pinned pool1 pool2 pool4)

# The model checks are long; on a variant they play the first of the seeds they always play.
set(JZX_LIGHTER_loop_model JZX_MODEL_OPS=200000)
set(JZX_LIGHTER_sup_model JZX_MODEL_SEEDS=1500 JZX_SEED=1)

# What plays many seeds has a second entry, <room>/<name>@long with the label long, which plays those
# that the first leaves out. `make check` runs both, `make test` the first. A sanitizer's build plays
# fewer by itself.
set(JZX_SHORT_jobs_model JZX_SEED=1 JZX_MODEL_SEEDS=500)
set(JZX_REST_jobs_model JZX_SEED=501 JZX_MODEL_SEEDS=4500)
set(JZX_SHORT_jobs_crowd_model JZX_SEED=1 JZX_MODEL_SEEDS=500)
set(JZX_REST_jobs_crowd_model JZX_SEED=501 JZX_MODEL_SEEDS=4500)
set(JZX_SHORT_flips_sweep JZX_FLIP_STEP=7)
set(JZX_REST_flips_sweep JZX_FLIP_STEP=1)
set(JZX_SHORT_flips_live_sweep JZX_FLIP_STEP=7)
set(JZX_REST_flips_live_sweep JZX_FLIP_STEP=1)
# The console's that wait for its time limits.
foreach(name limits_test web_test history_test)
    set(JZX_REST_${name} JZX_CONSOLE_LONG=1)
endforeach()
set(JZX_SHORT_sup_model JZX_SEED=1 JZX_MODEL_SEEDS=3000)
set(JZX_REST_sup_model JZX_SEED=3001 JZX_MODEL_SEEDS=9000)

# What takes a sanitizer long and shows it little: under ASan many seeds of models, under TSan the same code again and again.
# Label heavy, which `make test` leaves to `make check` and CI.
if(JZX_SANITIZE MATCHES "address")
    set(JZX_HEAVY "^(manifest/(jobs_|flips_)|supervision/sup_(model|race)|loop/(loop_model|calls_sweep)|messaging/(registry|ask)_sweep|testkit/sim_system)")
elseif(JZX_SANITIZE)
    set(JZX_HEAVY "^(control/trace_test|lifecycle/system_watch_test)")
else()
    set(JZX_HEAVY "^$")
endif()

# What takes longest starts first (on a fresh tree ctest knows no times), so that no processor waits
# for the last one.
set(JZX_LONG 20)
function(jzx_cost name)
    if(name MATCHES "^(manifest/(jobs_|flips_|kill9|store_damage|queue_model)|loop/(system_shutdown|idle|loop_model|calls)|supervision/sup_(race|model)|console/limits)")
        set_tests_properties(${name} PROPERTIES COST ${JZX_LONG})
    endif()
    if(name MATCHES "${JZX_HEAVY}")
        set_property(TEST ${name} APPEND PROPERTY LABELS heavy)
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

function(jzx_add_variants room name kind program source)
    jzx_find_variants(${source} variants)
    if(NOT pool4 IN_LIST variants AND kind MATCHES "^(test|threads)$")
        set_property(TEST ${room}/${name} APPEND PROPERTY LABELS not_on_pool4)
    endif()
    foreach(variant ${variants})
        string(REGEX REPLACE "^pool" "pool:" dispatcher ${variant})
        set(entry ${room}/${name}@${variant})
        add_test(NAME ${entry} COMMAND ${program})
        set_tests_properties(${entry} PROPERTIES
            TIMEOUT ${JZX_TEST_TIMEOUT} LABELS "${kind};${room};on_${variant}" SKIP_RETURN_CODE 77
            ENVIRONMENT "JZX_DISPATCHER=${dispatcher};${JZX_LIGHTER_${name}}")
        jzx_cost(${entry})
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

# jzx_add_fixtures(room place library...): what the tests of a room share, <feature>_fixture.c, is compiled
# once, into a library that the programs of the room are linked with.
function(jzx_add_fixtures room place)
    file(GLOB sources CONFIGURE_DEPENDS ${place}/*_fixture.c)
    if(sources)
        add_library(jzt_${room} STATIC ${sources})
        target_link_libraries(jzt_${room} PRIVATE jzt_support ${ARGN})
    endif()
endfunction()

# jzx_add_test_program(target name room sources libraries...): an executable in <build>/tests/<room>.
function(jzx_add_test_program target name room sources)
    add_executable(${target} ${sources})
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/${room})
    if(TARGET jzt_${room})
        target_link_libraries(${target} PRIVATE jzt_${room})
    endif()
    target_link_libraries(${target} PRIVATE jzt_support ${ARGN} Threads::Threads)
    # To optimize a test takes longer than to run it; the library stays optimized, and so do models and sweeps.
    if(JZX_SANITIZE OR (JZX_DEBUG AND NOT target MATCHES "_(model|sweep)$"))
        target_compile_options(${target} PRIVATE -O0)
    endif()
endfunction()

# jzx_in_groups(target room kind): room-<room> and kind-<kind> build it; what the thread sanitizer is for,
# tests-with-threads.
function(jzx_in_groups target room kind)
    set(groups room-${room} kind-${kind})
    if(room STREQUAL "manifest" OR (kind MATCHES "^(test|threads)$" AND NOT room MATCHES "^(console|command|testkit)$"))
        list(APPEND groups tests-with-threads)
    endif()
    foreach(group ${groups})
        if(NOT TARGET ${group})
            add_custom_target(${group})
        endif()
        add_dependencies(${group} ${target})
    endforeach()
endfunction()

# jzx_add_entries(room kind name source): what ctest runs of a file.
function(jzx_add_entries room kind name source)
    set(program ${PROJECT_BINARY_DIR}/tests/${room}/${name})
    set(entry ${room}/${name})
    add_test(NAME ${entry} COMMAND ${program})
    set_tests_properties(${entry} PROPERTIES
        TIMEOUT ${JZX_TEST_TIMEOUT} LABELS "${kind};${room}" SKIP_RETURN_CODE 77)
    jzx_cost(${entry})
    if(DEFINED JZX_REST_${name} AND NOT JZX_SANITIZE)
        add_test(NAME ${entry}@long COMMAND ${program})
        set_tests_properties(${entry} PROPERTIES ENVIRONMENT "${JZX_SHORT_${name}}")
        set_tests_properties(${entry}@long PROPERTIES TIMEOUT ${JZX_TEST_TIMEOUT} LABELS long
            SKIP_RETURN_CODE 77 COST 40 ENVIRONMENT "${JZX_REST_${name}}")
    endif()
    # Of the manifest's tests, those with threads of their own are for the thread sanitizer.
    file(STRINGS ${source} threads REGEX "#include <pthread.h>")
    if(room STREQUAL "manifest" AND threads)
        set_property(TEST ${entry} APPEND PROPERTY LABELS threads)
    endif()
    # Actors are run by the tests of the core and of what tests are made with; not by units.
    if(NOT kind STREQUAL "unit" AND NOT room MATCHES "^(manifest|console|terminal)$")
        jzx_add_variants(${room} ${name} ${kind} ${program} ${source})
    endif()
endfunction()

# jzx_add_tests(room place library...): the tests of a room or a product, which are at place in the sources.
function(jzx_add_tests room place)
    set(binaries ${PROJECT_BINARY_DIR}/tests/${room})
    file(MAKE_DIRECTORY ${binaries})
    jzx_add_fixtures(${room} ${place} ${ARGN})
    foreach(kind ${JZX_KINDS})
        file(GLOB sources CONFIGURE_DEPENDS ${place}/*_${kind}.c)
        if(NOT TARGET jzx_client)
            list(FILTER sources EXCLUDE REGEX "/control/doctor_[^/]*$")
        endif()
        set(together "")
        set(JZX_FILES "")
        set(JZX_DECLARATIONS "")
        foreach(source ${sources})
            get_filename_component(name ${source} NAME_WE)
            jzx_wants_own_program(${source} own)
            if(own)
                # Where the link was, the linker would write what it points to.
                if(IS_SYMLINK ${binaries}/${name})
                    file(REMOVE ${binaries}/${name})
                endif()
                jzx_add_test_program(${room}_${name} ${name} ${room} ${source} ${ARGN})
                jzx_in_groups(${room}_${name} ${room} ${kind})
            else()
                set(entry jzt_main_${room}_${name})
                list(APPEND together ${source})
                set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS JZT_MAIN=${entry})
                string(APPEND JZX_DECLARATIONS "int ${entry}(int argc, char **argv);\n")
                string(APPEND JZX_FILES "    {\"${name}\", ${entry}},\n")
                file(CREATE_LINK all_${kind} ${binaries}/${name} SYMBOLIC)
            endif()
            jzx_add_entries(${room} ${kind} ${name} ${source})
        endforeach()
        if(together)
            set(table ${PROJECT_BINARY_DIR}/tests/${room}_${kind}.c)
            configure_file(${PROJECT_SOURCE_DIR}/tests/support/program.c.in ${table} @ONLY)
            jzx_add_test_program(${room}_${kind} all_${kind} ${room} "${together};${table}" ${ARGN})
            jzx_in_groups(${room}_${kind} ${room} ${kind})
        endif()
    endforeach()
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
    PRIVATE ${PROJECT_SOURCE_DIR}/core/include ${PROJECT_SOURCE_DIR}/testkit/include)

if(TARGET jzx_testkit)
    set(kit jzx_testkit_twin)
    jzx_add_tests(api tests/api jzx_testkit jzx)
    jzx_add_tests(testkit testkit/tests jzx_testkit_twin jzx_twin)
endif()
file(STRINGS core/src/layers.txt rooms REGEX "^[a-z]")
foreach(room ${rooms})
    string(REGEX REPLACE " .*" "" room ${room})
    jzx_add_tests(${room} core/tests/${room} ${kit} jzx_twin)
endforeach()
# These read files of the sources. Not __FILE__: what that is depends on how the compiler was called.
set_property(SOURCE ${PROJECT_SOURCE_DIR}/core/tests/base/error_unit.c
    ${PROJECT_SOURCE_DIR}/core/tests/control/metrics_test.c
    APPEND PROPERTY COMPILE_DEFINITIONS "JZT_SOURCES=\"${PROJECT_SOURCE_DIR}\"")
# What the facts of a program mean is decided in its clients.
if(TARGET jzx_client)
    target_link_libraries(control_doctor_test PRIVATE jzx_client)
    target_link_libraries(control_doctor_specs_test PRIVATE jzx_client)
endif()

if(TARGET jzx_manifest_twin)
    jzx_add_tests(manifest manifest/tests jzx_manifest_twin ${kit} jzx_twin)
    include(manifest/tests/kill9/kill9.cmake)
    include(manifest/tests/crashlab/crashlab.cmake)
endif()

if(TARGET jzx-command)
    include(cmd/jzx/tests/command/command.cmake)
    include(cmd/jzx/tests/terminal/terminal.cmake)
endif()
if(TARGET jzx_console_twin)
    include(console/tests/console.cmake)
endif()

# The rest looks at sources and packages, so one plain build is enough for it.
if(JZX_SANITIZE OR JZX_COVERAGE)
    return()
endif()

function(jzx_add_script name label script)
    add_test(NAME ${name} COMMAND sh ${PROJECT_SOURCE_DIR}/${script} ${ARGN}
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${JZX_TEST_TIMEOUT} LABELS "${label}" SKIP_RETURN_CODE 77)
endfunction()

# jzx_add_kept(name label "path;..." script...): two scripts. <name>, label kept, runs when something below
# these paths is not as it was when it passed (tools/kept); <name>@all, label long, always.
function(jzx_add_kept name label paths script)
    jzx_add_script(${name} "${label};kept" tools/kept ${name} ${paths} -- sh ${script} ${ARGN})
    jzx_add_script(${name}@all long ${script} ${ARGN})
    set_tests_properties(${name} ${name}@all PROPERTIES COST ${JZX_LONG})
endfunction()

include(console/tests/browser/browser.cmake)

set(headers core/include testkit/include manifest/include console/include)
jzx_add_script(tidy tidy tools/tidy)
jzx_add_kept(tidy/samples tidy "tools/tidy;tools/tidy.awk;tools/references;tests/tidy" tests/tidy/run.sh)
jzx_add_script(tools/deps tools tests/tools/deps.sh)
jzx_add_script(tools/kept tools tests/tools/kept.sh)
jzx_add_script(tools/man tools tests/tools/man.sh)
jzx_add_script(tools/uncalled tools tools/uncalled)
jzx_add_script(tools/uncalled_samples tools tests/tools/uncalled.sh)
jzx_add_script(tools/lint tools tests/tools/lint.sh)
jzx_add_script(tools/browser_deps tools tests/tools/browser_deps.sh)
jzx_add_kept(abi/headers_gcc headers "${headers};tests/abi/headers.sh" tests/abi/headers.sh gcc g++)
jzx_add_kept(abi/headers_clang headers "${headers};tests/abi/headers.sh" tests/abi/headers.sh clang clang++)
set(protocol core/include tests/abi/protocol tests/abi/protocol_refused.sh)
jzx_add_kept(abi/protocol_gcc headers "${protocol}" tests/abi/protocol_refused.sh gcc g++)
jzx_add_kept(abi/protocol_clang headers "${protocol}" tests/abi/protocol_refused.sh clang clang++)
jzx_add_script(abi/sizes abi tests/abi/sizes.sh ${CMAKE_C_COMPILER})
jzx_add_script(abi/man abi tests/abi/man_signatures.sh ${CMAKE_C_COMPILER})
# It keeps sums of its own, one per model.
jzx_add_script(models models tests/models/run.sh --changed)
jzx_add_script(models@all long tests/models/run.sh)
set_tests_properties(tidy models models@all PROPERTIES COST ${JZX_LONG})
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
    jzx_add_script(manifest/command manifest manifest/tests/command.sh
        $<TARGET_FILE:jzx-command> ${PROJECT_BINARY_DIR}/tests/manifest/sample_test)
endif()
if(TARGET jzx_console)
    jzx_add_script(abi/console_symbols abi tests/abi/symbols.sh
        $<TARGET_FILE:jzx_console> tests/abi/symbols_console.txt ${JZX_CONSOLE_HEADERS})
endif()
if(TARGET jzx_console AND TARGET jzx-command)
    jzx_add_script(console/command console console/tests/command.sh
        $<TARGET_FILE:jzx-command> $<TARGET_FILE:example_supervised_tcp>)
endif()
jzx_add_script(install install tests/install/run.sh ${PROJECT_BINARY_DIR})
if(TARGET example_flapping)
    jzx_add_script(probes probes core/tests/control/probes.sh
        $<TARGET_FILE:jzx> $<TARGET_FILE:example_flapping>)
endif()
