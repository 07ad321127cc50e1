# What `cmake --install` puts in place: libraries, headers, man pages, pkg-config and CMake files, the command with its
# completion, documents and examples. With --strip, as `make install` does, without what only debuggers read.
include(CMakePackageConfigHelpers)
set(JZX_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/jzx)

file(GLOB JZX_HEADERS CONFIGURE_DEPENDS core/include/jzx/*.h)
list(FILTER JZX_HEADERS EXCLUDE REGEX "/testkit\\.h$")
install(FILES ${JZX_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/jzx)
install(TARGETS jzx jzx_static EXPORT jzxTargets)
install(EXPORT jzxTargets NAMESPACE jzx:: DESTINATION ${JZX_CMAKE_DIR})

if(JZX_TESTKIT_SOURCES)
    install(FILES testkit/include/jzx/testkit.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/jzx)
    install(TARGETS jzx_testkit jzx_testkit_static EXPORT jzxTestkitTargets)
    install(EXPORT jzxTestkitTargets NAMESPACE jzx:: DESTINATION ${JZX_CMAKE_DIR})
endif()

if(TARGET jzx_manifest)
    file(GLOB JZX_MANIFEST_HEADERS CONFIGURE_DEPENDS manifest/include/jzx/*.h)
    install(FILES ${JZX_MANIFEST_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/jzx)
    install(TARGETS jzx_manifest jzx_manifest_static EXPORT jzxManifestTargets)
    install(EXPORT jzxManifestTargets NAMESPACE jzx:: DESTINATION ${JZX_CMAKE_DIR})
endif()
if(TARGET jzx-command)
    install(TARGETS jzx-command)
endif()

configure_package_config_file(cmake/jzxConfig.cmake.in ${PROJECT_BINARY_DIR}/jzxConfig.cmake
    INSTALL_DESTINATION ${JZX_CMAKE_DIR} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/jzxConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/jzxConfig.cmake ${PROJECT_BINARY_DIR}/jzxConfigVersion.cmake
    DESTINATION ${JZX_CMAKE_DIR})

# The .pc files find their prefix from where they are, so `cmake --install --prefix` moves them too.
file(RELATIVE_PATH JZX_PC_PREFIX
    ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" JZX_PC_PREFIX "${JZX_PC_PREFIX}")
configure_file(cmake/libjzx.pc.in ${PROJECT_BINARY_DIR}/libjzx.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/libjzx.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(JZX_TESTKIT_SOURCES)
    configure_file(cmake/libjzx_testkit.pc.in ${PROJECT_BINARY_DIR}/libjzx_testkit.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/libjzx_testkit.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

if(TARGET jzx_manifest)
    configure_file(cmake/libjzx_manifest.pc.in ${PROJECT_BINARY_DIR}/libjzx_manifest.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/libjzx_manifest.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

if(TARGET jzx_console)
    include(cmake/console_install.cmake)
endif()

# tools/man finishes the pages: SYNOPSIS and ERRORS are what the headers say.
file(GLOB JZX_PAGES CONFIGURE_DEPENDS man/man[1-8]/*.[1-8])
file(GLOB JZX_PAGE_HEADERS CONFIGURE_DEPENDS */include/jzx/*.h)
set(finished)
foreach(page IN LISTS JZX_PAGES)
    string(REGEX REPLACE ".*/(man[1-8]/[^/]+)$" "${PROJECT_BINARY_DIR}/man/\\1" page ${page})
    string(REGEX REPLACE ".*\\." "" section ${page})
    list(APPEND finished ${page})
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
add_custom_command(OUTPUT ${finished}
    COMMAND sh ${PROJECT_SOURCE_DIR}/tools/man ${PROJECT_BINARY_DIR}/man
    DEPENDS ${JZX_PAGES} ${JZX_PAGE_HEADERS} core/src/base/error.c tools/man tools/man.awk
    COMMENT "Writing man pages" VERBATIM)
add_custom_target(man ALL DEPENDS ${finished})
add_dependencies(libraries man)

set(JZX_BASH_DIR ${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions CACHE STRING "Where bash looks for completions")
set(JZX_ZSH_DIR ${CMAKE_INSTALL_DATAROOTDIR}/zsh/site-functions CACHE STRING "Where zsh looks for completions")
if(TARGET jzx-command)
    install(FILES contrib/completion/jzx.bash DESTINATION ${JZX_BASH_DIR} RENAME jzx)
    install(FILES contrib/completion/_jzx DESTINATION ${JZX_ZSH_DIR})
endif()

set(JZX_DOC_DIR ${CMAKE_INSTALL_DATAROOTDIR}/doc/libjzx CACHE STRING "Where LICENSE, documents and examples go")
install(FILES LICENSE README.md CHANGELOG.md SECURITY.md DESTINATION ${JZX_DOC_DIR})
install(DIRECTORY docs/ DESTINATION ${JZX_DOC_DIR}/docs
    FILES_MATCHING PATTERN *.md PATTERN *.png PATTERN *.svg)
install(DIRECTORY examples/ DESTINATION ${JZX_DOC_DIR}/examples
    FILES_MATCHING PATTERN *.c PATTERN *.h PATTERN *.cpp PATTERN *.md)

# CMake strips programs and shared libraries by itself; of archives only the debug information may go.
foreach(target jzx_static jzx_testkit_static jzx_manifest_static jzx_console_static)
    if(TARGET ${target} AND CMAKE_STRIP)
        install(CODE "
            if(CMAKE_INSTALL_DO_STRIP)
                set(archive \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/$<TARGET_FILE_NAME:${target}>\")
                execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug --enable-deterministic-archives \"\${archive}\"
                    COMMAND_ERROR_IS_FATAL ANY)
            endif()")
    endif()
endforeach()
