/* Names of functions for people, outside of handlers: also of those that are not exported, which
 * dladdr(3) does not know. They come from the files that the program was loaded from. */
#ifndef JZI_OS_SYMBOLS_H
#define JZI_OS_SYMBOLS_H

#include <jzx/types.h>

#include <stdbool.h>

/* Files that were looked into; the next address is often of the same one. Zeroed is fine. */
enum { JZI_SYMBOL_FILES = 4 };
typedef struct jzi_symbols {
    const jzx_allocator *alloc;
    struct jzi_symbol_file *files[JZI_SYMBOL_FILES];
} jzi_symbols;

/* "parse_line+0x1c (server)" or, where there is no name, "server+0x119c"; "" for an address in no
 * object. is_return: the address is where a call returns to, so the call is one byte before. */
void jzi_symbol_write(jzi_symbols *symbols, const void *address, bool is_return, char *out,
                      size_t cap);
void jzi_symbols_deinit(jzi_symbols *symbols);

#endif
