# libjzx_console (on libjzx, libmicrohttpd and jansson) and its testing twin. The page is part of the library:
# cmake/console_page.cmake turns console/page/* into C. Without those two there is none of it.
option(JZX_CONSOLE "Build libjzx_console when libmicrohttpd is found" ON)
if(NOT JZX_CONSOLE OR JZX_FUZZ)
    return()
endif()
if(PkgConfig_FOUND)
    pkg_check_modules(MICROHTTPD QUIET IMPORTED_TARGET libmicrohttpd>=0.9.73)
endif()
if(NOT MICROHTTPD_FOUND)
    message(STATUS "libmicrohttpd is missing (Debian: libmicrohttpd-dev): no console")
    return()
endif()
if(NOT TARGET jzx_client)
    message(STATUS "jansson is missing (Debian: libjansson-dev): no console")
    return()
endif()

file(GLOB JZX_CONSOLE_SOURCES CONFIGURE_DEPENDS console/src/*.c)
file(GLOB JZX_CONSOLE_PAGE CONFIGURE_DEPENDS
    console/page/*.html console/page/*.css console/page/*.js)
set(page_c ${PROJECT_BINARY_DIR}/console_page.c)
add_custom_command(OUTPUT ${page_c}
    COMMAND ${CMAKE_COMMAND} "-DOUTPUT=${page_c}" "-DFOLDER=${PROJECT_SOURCE_DIR}/console/page"
        -P ${PROJECT_SOURCE_DIR}/cmake/console_page.cmake
    DEPENDS ${JZX_CONSOLE_PAGE} ${PROJECT_SOURCE_DIR}/cmake/console_page.cmake VERBATIM)

# The console sees the public headers of libjzx only, and cmd/client, which it shares with the command.
jzx_product(console ON jzx SOURCES ${JZX_CONSOLE_SOURCES} ${page_c}
    LINK microhttpd jansson SYSTEM ${MICROHTTPD_INCLUDE_DIRS} ${JANSSON_INCLUDE_DIRS}
    OPTIONS -D_GNU_SOURCE WITH jzx_client SEES ${PROJECT_SOURCE_DIR}/cmd/client)
foreach(form "" _static _twin)
    if(TARGET jzx_console${form})
        target_link_directories(jzx_console${form} PRIVATE
            ${MICROHTTPD_LIBRARY_DIRS} ${JANSSON_LIBRARY_DIRS})
    endif()
endforeach()
