/* The files of console/page. */
#include "page.h"

#include <string.h>

const jzc_page_file *jzc_page_find(const char *path)
{
    for (size_t i = 0; i < jzc_page_file_count; i++) {
        if (strcmp(jzc_page_files[i].path, path) == 0) {
            return &jzc_page_files[i];
        }
    }
    return NULL;
}
