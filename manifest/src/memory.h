/* The memory of the manifest: libc's, through this one door (ADR 0028). Tests refuse it here, and a
 * count or an allocator of the user would go here. LMDB has memory of its own. */
#ifndef MFI_MEMORY_H
#define MFI_MEMORY_H

#include <stddef.h>

/* All of them: NULL when there is no memory. The contents are undefined, or what is said. */
void *mfi_alloc(size_t size);
/* `count` items, zeroed; NULL also when the product is too large. */
void *mfi_alloc_zeroed(size_t count, size_t size);
/* size is a multiple of the alignment. */
void *mfi_alloc_aligned(size_t alignment, size_t size);
/* Grows or shrinks; on NULL nothing changed. */
void *mfi_realloc(void *ptr, size_t size);
/* ptr may be NULL, or be memory that libc made (realpath(3)). */
void mfi_free(void *ptr);

/* An array of *cap items with room for one behind `count`: `first` of them at first, then doubled.
 * The old pointer is gone then. NULL: no memory, and nothing changed. */
void *mfi_array_grow(void *items, size_t *cap, size_t first, size_t count, size_t size);

/* The first `len` bytes of a text, and a zero. */
char *mfi_copy_text(const char *text, size_t len);

#endif
