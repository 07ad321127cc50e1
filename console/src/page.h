/* The files of console/page, which the build puts into the library. */
#ifndef JZC_PAGE_H
#define JZC_PAGE_H

#include <stddef.h>

typedef struct jzc_page_file {
    const char *path; /* "/app.js"; the page itself is "/" */
    const char *type;
    const unsigned char *bytes;
    size_t len;
} jzc_page_file;

extern const jzc_page_file jzc_page_files[];
extern const size_t jzc_page_file_count;

/* NULL: there is none. */
const jzc_page_file *jzc_page_find(const char *path);

#endif
