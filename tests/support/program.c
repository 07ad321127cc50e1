#include "program.h"

#include <stdio.h>
#include <string.h>

static const jzt_file *file_called(const char *name, const jzt_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(files[i].name, name) == 0) {
            return &files[i];
        }
    }
    return NULL;
}

int jzt_program_main(int argc, char **argv, const jzt_file *files, size_t count)
{
    /* The program's name and the file's, so that "replay with:" can be typed again. */
    static char called[4096];
    if (argc < 1) {
        return 2;
    }
    const char *slash = strrchr(argv[0], '/');
    const char *name = slash != NULL ? slash + 1 : argv[0];
    const jzt_file *file = file_called(name, files, count);
    if (file != NULL) {
        return file->run(argc, argv);
    }
    file = argc > 1 ? file_called(argv[1], files, count) : NULL;
    if (file != NULL) {
        (void)snprintf(called, sizeof called, "%s %s", argv[0], argv[1]);
        argv[1] = called;
        return file->run(argc - 1, argv + 1);
    }
    fprintf(stderr, "usage: %s FILE [TEST...]; the files are:\n", argv[0]);
    for (size_t i = 0; i < count; i++) {
        fprintf(stderr, "  %s\n", files[i].name);
    }
    return 2;
}
