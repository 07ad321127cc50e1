# The command jzx: a client of running programs (jansson), of manifest files where there is
# libjzx_manifest, with `jzx top` where there is ncurses, `jzx console` where there is libjzx_console,
# and source lines in backtraces where there is libdw. -DJZX_COMMAND=OFF builds without it.
option(JZX_COMMAND "Build the command jzx (needs jansson)" ON)
if(NOT JZX_COMMAND OR JZX_FUZZ)
    return()
endif()
if(PkgConfig_FOUND)
    pkg_check_modules(LIBDW QUIET IMPORTED_TARGET libdw)
    pkg_check_modules(NCURSESW QUIET IMPORTED_TARGET ncursesw)
endif()
if(NOT TARGET jzx_client)
    message(FATAL_ERROR "jansson is missing (Debian: libjansson-dev pkg-config); "
        "-DJZX_COMMAND=OFF builds without the command jzx.")
endif()

file(GLOB jzx_command_sources CONFIGURE_DEPENDS cmd/jzx/*.c)
set(jzx_command_top ${jzx_command_sources})
list(FILTER jzx_command_top INCLUDE REGEX "/top[^/]*\\.c$")
set(jzx_command_console ${jzx_command_sources})
list(FILTER jzx_command_console INCLUDE REGEX "/console[^/]*\\.c$")
list(FILTER jzx_command_sources EXCLUDE REGEX "/(top|console)[^/]*\\.c$")

add_executable(jzx-command ${jzx_command_sources} $<TARGET_OBJECTS:jzx_client>)
set_target_properties(jzx-command PROPERTIES OUTPUT_NAME jzx)
target_include_directories(jzx-command PRIVATE cmd/jzx cmd/client)
target_link_libraries(jzx-command PRIVATE jzx_static PkgConfig::JANSSON Threads::Threads m)
add_dependencies(libraries jzx-command)

set(JZX_COMMAND_MANIFEST 0)
if(TARGET jzx_manifest_static)
    set(JZX_COMMAND_MANIFEST 1)
    file(GLOB jzx_command_manifest CONFIGURE_DEPENDS cmd/jzx/manifest/*.c)
    target_sources(jzx-command PRIVATE ${jzx_command_manifest})
    target_link_libraries(jzx-command PRIVATE jzx_manifest_static)
endif()
# `jzx top --once` and --json need no ncurses; without it the live view says what is missing.
set(JZX_COMMAND_TOP 0)
set(JZX_COMMAND_CURSES 0)
if(jzx_command_top)
    set(JZX_COMMAND_TOP 1)
    target_sources(jzx-command PRIVATE ${jzx_command_top})
    if(TARGET PkgConfig::NCURSESW)
        set(JZX_COMMAND_CURSES 1)
        target_link_libraries(jzx-command PRIVATE PkgConfig::NCURSESW)
    endif()
endif()
set(JZX_COMMAND_CONSOLE 0)
if(TARGET jzx_console_static AND jzx_command_console)
    set(JZX_COMMAND_CONSOLE 1)
    target_sources(jzx-command PRIVATE ${jzx_command_console})
    target_link_libraries(jzx-command PRIVATE jzx_console_static)
endif()
set(JZX_COMMAND_LIBDW 0)
if(TARGET PkgConfig::LIBDW)
    set(JZX_COMMAND_LIBDW 1)
    target_link_libraries(jzx-command PRIVATE PkgConfig::LIBDW)
endif()
target_compile_definitions(jzx-command PRIVATE _GNU_SOURCE
    JZX_COMMAND_MANIFEST=${JZX_COMMAND_MANIFEST} JZX_COMMAND_TOP=${JZX_COMMAND_TOP}
    JZX_COMMAND_CURSES=${JZX_COMMAND_CURSES}
    JZX_COMMAND_CONSOLE=${JZX_COMMAND_CONSOLE} JZX_COMMAND_LIBDW=${JZX_COMMAND_LIBDW})
message(STATUS "jzx: manifest ${JZX_COMMAND_MANIFEST}, top ${JZX_COMMAND_TOP}, curses ${JZX_COMMAND_CURSES}, "
    "console ${JZX_COMMAND_CONSOLE}, libdw ${JZX_COMMAND_LIBDW}")
