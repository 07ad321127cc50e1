/* What the console's wires know in common of the program: where it is, which process it is, and
 * since when and how it is gone. All of them run on the console's one loop. */
#ifndef JZC_PROGRAM_H
#define JZC_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

/* "unix:" and the path of a socket, for jzx_connect(). */
#define JZC_CONTROL_MAX 127

typedef struct jzc_program {
    char address[JZC_CONTROL_MAX + 1];
    uint64_t pid;     /* as it said when it greeted; 0: it never did */
    int process;      /* a descriptor of that process, owned; -1: there is none */
    uint64_t lost_ns; /* since when it cannot be reached; 0: it can, or was not tried */
} jzc_program;

typedef enum jzc_end {
    JZC_END_UNKNOWN, /* the program was never reached */
    JZC_END_CLOSED,  /* its process has ended, and took its socket away before */
    JZC_END_DIED,    /* its process has ended, and left its socket behind */
    JZC_END_CLOSING, /* its socket is gone, its process is not, or is not known */
    JZC_END_LOST     /* both are there */
} jzc_end;

/* The program greeted, and is the process of that number. */
void jzc_program_met(jzc_program *program, uint64_t pid);
void jzc_program_lost(jzc_program *program, uint64_t now_ns);
/* How the program is gone, as far as can be seen now. */
jzc_end jzc_program_end(const jzc_program *program);
/* "closed", ...; NULL for UNKNOWN. And a sentence, always. */
const char *jzc_end_name(jzc_end end);
const char *jzc_end_text(jzc_end end);
void jzc_program_deinit(jzc_program *program);

#endif
