/* A file is read in parts: its header, its table of sections, and of those the symbols and their
 * names. Nothing in it is trusted: what does not fit is as if it were not there. A file that was
 * replaced since the program started would tell wrong names: the program's own is opened by a way
 * that leads to the old one; of libraries we have to believe it. */
#define _GNU_SOURCE
#include "os/debug/symbols.h"

#include "base/alloc.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define TABLE_MAX ((size_t)64 << 20) /* bytes; larger ones are left alone */

typedef struct jzi_symbol_file {
    const void *base; /* where it was loaded */
    bool absolute;    /* its symbols are addresses, and not offsets from there */
    ElfW(Sym) * symbols;
    size_t count;
    char *names;
    size_t names_bytes; /* the last one is 0 */
} jzi_symbol_file;

/* Part of a file in memory of our own, with a zero behind it. NULL: that part is not there. */
static void *read_part(const jzx_allocator *alloc, int fd, uint64_t from, size_t bytes)
{
    size_t done = 0;
    if (bytes == 0 || bytes > TABLE_MAX || from > INT64_MAX - TABLE_MAX) {
        return NULL;
    }
    char *part = jzi_alloc(alloc, bytes + 1);
    while (part != NULL && done < bytes) {
        ssize_t got = pread(fd, part + done, bytes - done, (off_t)(from + done));
        if (got <= 0) {
            jzi_free(alloc, part, bytes + 1);
            return NULL;
        }
        done += (size_t)got;
    }
    if (part != NULL) {
        part[bytes] = '\0';
    }
    return part;
}

static bool is_ours(const ElfW(Ehdr) * header)
{
    return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
           header->e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) &&
           header->e_shentsize == sizeof(ElfW(Shdr)) && header->e_shnum > 0;
}

/* The table of all symbols, or else of those that are exported. count: none. */
static size_t find_table(const ElfW(Shdr) * sections, size_t count)
{
    size_t found = count;
    for (size_t i = 0; i < count; i++) {
        bool fits = sections[i].sh_entsize == sizeof(ElfW(Sym)) && sections[i].sh_link < count;
        if (fits && (sections[i].sh_type == SHT_SYMTAB ||
                     (sections[i].sh_type == SHT_DYNSYM && found == count))) {
            found = i;
        }
    }
    return found;
}

static void read_tables(const jzx_allocator *alloc, int fd, const ElfW(Shdr) * sections,
                        size_t section_count, jzi_symbol_file *file)
{
    size_t at = find_table(sections, section_count);
    if (at == section_count) {
        return;
    }
    const ElfW(Shdr) *names = &sections[sections[at].sh_link];
    size_t count = sections[at].sh_size / sizeof(ElfW(Sym));
    file->symbols = read_part(alloc, fd, sections[at].sh_offset, count * sizeof(ElfW(Sym)));
    file->names = read_part(alloc, fd, names->sh_offset, names->sh_size);
    if (file->symbols != NULL) {
        file->count = count;
    }
    if (file->names != NULL) {
        file->names_bytes = names->sh_size;
    }
}

static void read_file(const jzx_allocator *alloc, int fd, jzi_symbol_file *file)
{
    ElfW(Ehdr) header;
    if (pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header || !is_ours(&header)) {
        return;
    }
    file->absolute = header.e_type == ET_EXEC;
    size_t bytes = header.e_shnum * sizeof(ElfW(Shdr));
    ElfW(Shdr) *sections = read_part(alloc, fd, header.e_shoff, bytes);
    if (sections != NULL) {
        read_tables(alloc, fd, sections, header.e_shnum, file);
        jzi_free(alloc, sections, bytes + 1);
    }
}

static void forget(const jzx_allocator *alloc, jzi_symbol_file *file)
{
    if (file != NULL) {
        jzi_free(alloc, file->symbols, file->count * sizeof(ElfW(Sym)) + 1);
        jzi_free(alloc, file->names, file->names_bytes + 1);
        jzi_free(alloc, file, sizeof *file);
    }
}

/* Whether an object is the program itself: its own name for itself may be a relative path. */
static bool is_program(const void *base)
{
    Dl_info info;
    return dladdr((const void *)(uintptr_t)getauxval(AT_PHDR), &info) != 0 &&
           info.dli_fbase == base;
}

/* The tables of an object, which may be empty. NULL: no memory. */
static const jzi_symbol_file *open_object(jzi_symbols *symbols, const Dl_info *info)
{
    for (size_t i = 0; i < JZI_SYMBOL_FILES && symbols->files[i] != NULL; i++) {
        if (symbols->files[i]->base == info->dli_fbase) {
            return symbols->files[i];
        }
    }
    jzi_symbol_file *file = jzi_alloc_zeroed(symbols->alloc, sizeof *file);
    if (file == NULL) {
        return NULL;
    }
    file->base = info->dli_fbase;
    const char *path = is_program(info->dli_fbase) ? "/proc/thread-self/exe" : info->dli_fname;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd >= 0) {
        read_file(symbols->alloc, fd, file);
        (void)close(fd);
    }
    forget(symbols->alloc, symbols->files[JZI_SYMBOL_FILES - 1]);
    memmove(symbols->files + 1, symbols->files, (JZI_SYMBOL_FILES - 1) * sizeof symbols->files[0]);
    symbols->files[0] = file;
    return file;
}

/* The function around an address; NULL: none. */
static const char *find_function(const jzi_symbol_file *file, uintptr_t pc, uintptr_t *out_offset)
{
    uintptr_t at = pc - (file->absolute ? 0 : (uintptr_t)file->base);
    for (size_t i = 0; i < file->count; i++) {
        const ElfW(Sym) *symbol = &file->symbols[i];
        if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
            at >= symbol->st_value && at - symbol->st_value < symbol->st_size &&
            symbol->st_name < file->names_bytes && file->names[symbol->st_name] != '\0') {
            *out_offset = at - symbol->st_value;
            return file->names + symbol->st_name;
        }
    }
    return NULL;
}

static const char *without_folder(const char *path)
{
    const char *slash = path == NULL ? NULL : strrchr(path, '/');
    return slash != NULL ? slash + 1 : path == NULL ? "" : path;
}

void jzi_symbol_write(jzi_symbols *symbols, const void *address, bool is_return, char *out,
                      size_t cap)
{
    uintptr_t pc = (uintptr_t)address - (is_return ? 1 : 0);
    uintptr_t offset = 0;
    Dl_info info;
    out[0] = '\0';
    if (dladdr((const void *)pc, &info) == 0) {
        return;
    }
    const char *object = without_folder(info.dli_fname);
    const jzi_symbol_file *file = open_object(symbols, &info);
    const char *function = file == NULL ? NULL : find_function(file, pc, &offset);
    if (function == NULL && info.dli_sname != NULL) {
        function = info.dli_sname;
        offset = pc - (uintptr_t)info.dli_saddr;
    }
    offset += is_return ? 1 : 0;
    if (function != NULL) {
        (void)snprintf(out, cap, "%s+0x%llx (%s)", function, (unsigned long long)offset, object);
    } else {
        (void)snprintf(out, cap, "%s+0x%llx", object,
                       (unsigned long long)((uintptr_t)address - (uintptr_t)info.dli_fbase));
    }
}

void jzi_symbols_deinit(jzi_symbols *symbols)
{
    for (size_t i = 0; i < JZI_SYMBOL_FILES; i++) {
        forget(symbols->alloc, symbols->files[i]);
        symbols->files[i] = NULL;
    }
}
