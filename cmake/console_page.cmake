# Turns the files of the page into C: cmake -DOUTPUT=FILE.c -DFOLDER=console/page -P console_page.cmake
file(GLOB files ${FOLDER}/*.html ${FOLDER}/*.css ${FOLDER}/*.js)
list(SORT files)
set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")

set(arrays "")
set(table "")
set(count 0)
foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME)
    get_filename_component(kind ${file} LAST_EXT)
    string(SUBSTRING "${kind}" 1 -1 kind)
    file(READ ${file} hex HEX)
    string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    set(path "/${name}")
    if(name STREQUAL "index.html")
        set(path "/")
    endif()
    # The 0 at the end is not counted; it is there for files that are empty.
    string(APPEND arrays "static const unsigned char file_${count}[] = {\n${bytes}0};\n")
    string(APPEND table "    {\"${path}\", \"${type_${kind}}\", file_${count}, "
        "sizeof file_${count} - 1},\n")
    math(EXPR count "${count} + 1")
endforeach()
if(NOT EXISTS ${FOLDER}/index.html)
    message(FATAL_ERROR "There is no ${FOLDER}/index.html.")
endif()
file(WRITE ${OUTPUT} "/* Made from console/page by cmake/console_page.cmake. */\n"
    "#include \"page.h\"\n\n${arrays}\n"
    "const jzc_page_file jzc_page_files[] = {\n${table}};\n"
    "const size_t jzc_page_file_count = ${count};\n")
