/* One program for the test files of a room and a kind. Each file is written as a program of its
 * own, with a main(); compiled with JZT_MAIN, that is a function with the name JZT_MAIN says. The
 * program's main() is made by cmake/tests.cmake and calls jzt_program_main() with a table of the
 * files. */
#ifndef JZT_PROGRAM_H
#define JZT_PROGRAM_H

#include <stddef.h>

#ifdef JZT_MAIN
int JZT_MAIN(int argc, char **argv);
#define main JZT_MAIN
#endif

typedef struct jzt_file {
    const char *name; /* of core/tests/actor/lane_unit.c: lane_unit */
    int (*run)(int argc, char **argv);
} jzt_file;

/* Runs the file that the program was called by, as lane_unit, or that its first argument names;
 * the other arguments are the file's. With neither it lists the files and returns 2. */
int jzt_program_main(int argc, char **argv, const jzt_file *files, size_t count);

#endif
