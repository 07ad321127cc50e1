# What clients of running programs share: the command jzx and the console read facts with jansson, and
# decide what they mean. It is no library of its own: its objects are part of both.
if(JZX_FUZZ OR NOT PkgConfig_FOUND)
    return()
endif()
pkg_check_modules(JANSSON QUIET IMPORTED_TARGET jansson>=2.11)
if(NOT TARGET PkgConfig::JANSSON)
    return()
endif()
file(GLOB jzx_client_sources CONFIGURE_DEPENDS cmd/client/*.c)
add_library(jzx_client OBJECT ${jzx_client_sources})
set_target_properties(jzx_client PROPERTIES
    POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
target_compile_definitions(jzx_client PRIVATE _GNU_SOURCE)
target_include_directories(jzx_client PUBLIC ${PROJECT_SOURCE_DIR}/cmd/client)
target_link_libraries(jzx_client PUBLIC PkgConfig::JANSSON)
