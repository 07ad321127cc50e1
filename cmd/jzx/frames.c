#include "frames.h"

#include "field.h"
#include "text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void frames_init(frames *f, const attach *link)
{
    *f = (frames){.link = link};
}

#if JZX_COMMAND_LIBDW
#include <elfutils/libdwfl.h>

/* The symbols of the process at the other end. The kernel has to agree that it has the pid that it
 * says: the files of another process would give wrong lines. */
static Dwfl *open_symbols(const attach *link)
{
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf,
                                             .find_debuginfo = dwfl_standard_find_debuginfo};
    pid_t pid = attach_peer(link);
    if (pid <= 0 || pid != attach_pid(link)) {
        return NULL;
    }
    /* What is not on this machine is not worth waiting for. */
    (void)unsetenv("DEBUGINFOD_URLS");
    Dwfl *symbols = dwfl_begin(&callbacks);
    if (symbols != NULL &&
        (dwfl_linux_proc_report(symbols, pid) != 0 || dwfl_report_end(symbols, NULL, NULL) != 0)) {
        dwfl_end(symbols);
        symbols = NULL;
    }
    return symbols;
}

static void resolve_one(Dwfl *symbols, json_t *frame, bool is_caller)
{
    const char *text = field_text(frame, "pc");
    char *end;
    errno = 0;
    Dwarf_Addr pc = strtoull(text, &end, 16);
    if (*text == '\0' || *end != '\0' || errno != 0 || pc == 0) {
        return;
    }
    /* A caller's address is where it goes on, which may be the next line or function already. */
    pc -= is_caller ? 1 : 0;
    Dwfl_Module *module = dwfl_addrmodule(symbols, pc);
    if (module == NULL) {
        return;
    }
    const char *function = dwfl_module_addrname(module, pc);
    if (function != NULL) {
        (void)json_object_set_new(frame, "function", json_string(function));
    }
    Dwfl_Line *line = dwfl_module_getsrc(module, pc);
    int number = 0;
    const char *file = line == NULL ? NULL : dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL);
    if (file != NULL) {
        (void)json_object_set_new(frame, "file", json_string(file));
        (void)json_object_set_new(frame, "line", json_integer(number));
    }
}

void frames_deinit(frames *f)
{
    if (f->symbols != NULL) {
        dwfl_end(f->symbols);
    }
    *f = (frames){0};
}

void frames_resolve(frames *f, json_t *list)
{
    size_t i;
    json_t *frame;
    if (json_array_size(list) == 0) {
        return;
    }
    if (!f->tried) {
        f->tried = true;
        f->symbols = open_symbols(f->link);
    }
    if (f->symbols == NULL) {
        return;
    }
    json_array_foreach(list, i, frame)
    {
        resolve_one(f->symbols, frame, i > 0);
    }
}
#else
void frames_deinit(frames *f)
{
    *f = (frames){0};
}

void frames_resolve(frames *f, json_t *list)
{
    (void)f;
    (void)list;
}
#endif

void frames_put(frames *f, FILE *out, json_t *list, const char *indent)
{
    size_t i;
    json_t *frame;
    frames_resolve(f, list);
    json_array_foreach(list, i, frame)
    {
        const char *function = field_text(frame, "function");
        const char *file = field_text(frame, "file");
        const char *slash = strrchr(file, '/');
        fprintf(out, "%s#%-2zu ", indent, i);
        if (*function == '\0') {
            text_put(out, field_text(frame, "text"));
        } else {
            text_put(out, function);
        }
        if (*file != '\0') {
            fputs(" at ", out);
            text_put(out, slash == NULL ? file : slash + 1);
            fprintf(out, ":%llu", (unsigned long long)field_u64(frame, "line"));
        } else if (*function != '\0') {
            fputs(" in ", out);
            text_put(out, field_text(frame, "text"));
        }
        fputc('\n', out);
    }
}
