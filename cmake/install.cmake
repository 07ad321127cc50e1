# What `cmake --install` puts in place: libraries, headers, man pages, pkg-config and CMake files.
include(CMakePackageConfigHelpers)
set(JZX_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/jzx)

file(GLOB JZX_HEADERS CONFIGURE_DEPENDS include/jzx/*.h)
list(FILTER JZX_HEADERS EXCLUDE REGEX "/testkit\\.h$")
install(FILES ${JZX_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/jzx)
install(TARGETS jzx jzx_static EXPORT jzxTargets)
install(EXPORT jzxTargets NAMESPACE jzx:: DESTINATION ${JZX_CMAKE_DIR})

if(JZX_TESTKIT_SOURCES)
    install(FILES include/jzx/testkit.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/jzx)
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

foreach(section 1 3 7)
    file(GLOB pages CONFIGURE_DEPENDS man/*.${section} man/man${section}/*.${section})
    if(pages)
        install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
    endif()
endforeach()
