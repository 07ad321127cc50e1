# What `cmake --install` puts in place of the console. Included by install.cmake.
file(GLOB JZX_CONSOLE_HEADERS CONFIGURE_DEPENDS console/include/jzx/*.h)
install(FILES ${JZX_CONSOLE_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/jzx)
install(TARGETS jzx_console jzx_console_static EXPORT jzxConsoleTargets)
install(EXPORT jzxConsoleTargets NAMESPACE jzx:: DESTINATION ${JZX_CMAKE_DIR})
configure_file(cmake/libjzx_console.pc.in ${PROJECT_BINARY_DIR}/libjzx_console.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/libjzx_console.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
