# jzx_product(NAME SOURCES file... [LIBRARY lib] [ON lib...] [LINK lib...] [SYSTEM dir...]
#             [OPTIONS flag...] [WITH objects...] [SEES dir...])
#
# A product is a folder NAME/ with include/, src/ and tests/. Its sources are compiled once and become
# LIBRARY (jzx_NAME; shared), LIBRARY_static and, where there are tests, LIBRARY_twin: the testing
# twin, with private symbols and headers within reach, so that what is tested is what is shipped.
#   ON      libraries of ours that it stands on: it sees their public headers and nothing else of them
#   LINK    other libraries, by name, so that the installed package need not look for them
#   SYSTEM  folders with the headers of those
#   WITH    object libraries that become part of it; SEES: folders with their headers
add_custom_target(libraries) # what `make install` needs, without tests and programs

function(jzx_product name)
    cmake_parse_arguments(product "" "LIBRARY" "SOURCES;ON;LINK;SYSTEM;OPTIONS;WITH;SEES" ${ARGN})
    set(lib ${product_LIBRARY})
    if(NOT lib)
        set(lib jzx_${name})
    endif()
    set(folder ${PROJECT_SOURCE_DIR}/${name})

    add_library(${lib}_objects OBJECT ${product_SOURCES})
    set_target_properties(${lib}_objects PROPERTIES
        POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
    target_compile_options(${lib}_objects PRIVATE ${product_OPTIONS})
    target_include_directories(${lib}_objects PRIVATE
        ${folder}/include ${folder}/src ${product_SEES})
    target_include_directories(${lib}_objects SYSTEM PRIVATE ${product_SYSTEM})
    foreach(below ${product_ON})
        target_include_directories(${lib}_objects PRIVATE
            $<TARGET_PROPERTY:${below},INTERFACE_INCLUDE_DIRECTORIES>)
    endforeach()

    set(objects $<TARGET_OBJECTS:${lib}_objects>)
    foreach(part ${product_WITH})
        list(APPEND objects $<TARGET_OBJECTS:${part}>)
    endforeach()
    add_library(${lib} SHARED ${objects})
    set_target_properties(${lib} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0)
    add_library(${lib}_static STATIC ${objects})
    set_target_properties(${lib}_static PROPERTIES OUTPUT_NAME ${lib})
    set(forms "" _static)
    if(JZX_BUILD_TESTS)
        add_library(${lib}_twin STATIC ${objects})
        target_include_directories(${lib}_twin PUBLIC ${folder}/src ${product_SEES})
        target_include_directories(${lib}_twin SYSTEM PUBLIC ${product_SYSTEM})
        list(APPEND forms _twin)
    endif()
    foreach(form IN LISTS forms)
        set_target_properties(${lib}${form} PROPERTIES LINKER_LANGUAGE C)
        target_include_directories(${lib}${form} PUBLIC
            $<BUILD_INTERFACE:${folder}/include>
            $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
        target_link_libraries(${lib}${form} PRIVATE ${product_LINK} Threads::Threads)
        foreach(below ${product_ON})
            target_link_libraries(${lib}${form} PUBLIC ${below}${form})
        endforeach()
    endforeach()

    if(name STREQUAL "core")
        set(exported jzx)
    else()
        set(exported ${name})
        set_target_properties(${lib} PROPERTIES EXPORT_NAME ${name})
        set_target_properties(${lib}_static PROPERTIES EXPORT_NAME ${name}_static)
    endif()
    add_library(jzx::${exported} ALIAS ${lib})
    add_library(jzx::${exported}_static ALIAS ${lib}_static)
    add_dependencies(libraries ${lib} ${lib}_static)
endfunction()
