/* The subcommands of jzx manifest. */
#ifndef JZX_CMD_MANIFEST_H
#define JZX_CMD_MANIFEST_H

#include <jzx/manifest_store.h>

#include <stdbool.h>
#include <stdint.h>

/* Options of `jzx manifest`; a subcommand says which it takes. */
enum { OPT_STATE = 0x1, OPT_KIND = 0x2, OPT_DB = 0x4, OPT_LIMIT = 0x8 };

/* One call of a subcommand of `jzx manifest FILE`. */
typedef struct call {
    const char *file;
    char **operands; /* after the subcommand's name */
    int operand_count;
    bool json;
    unsigned given;     /* OPT_* */
    const char *states; /* texts of the options */
    const char *kind;
    const char *db;
    const char *limit;
    const char *help; /* what to say after "Try:" */
} call;

int cmd_stats(const call *c);
int cmd_jobs_list(const call *c);
int cmd_jobs_show(const call *c);
int cmd_jobs_retry(const call *c);
int cmd_jobs_cancel(const call *c);
int cmd_jobs_pause(const call *c);
int cmd_jobs_resume(const call *c);
int cmd_chunks(const call *c);
int cmd_check(const call *c);
int cmd_dump(const call *c);
int cmd_backup(const call *c);

/* Opens the file, which must be there. NULL: the function has said why, and *out_status says it
 * too. */
jzx_mf *file_open_reading(const call *c, int *out_status);
jzx_mf *file_open_writing(const call *c, int *out_status);
void file_close(jzx_mf *mf);

/* Words as numbers. EXIT_FINE, or a status after saying what is wrong. A kind and a database go by
 * number or by name. */
int word_u64(const call *c, const char *what, const char *text, uint64_t *out);
int word_kind(const call *c, jzx_mf *mf, const char *text, uint16_t *out);
int word_db(jzx_mf *mf, const char *text, uint64_t *out);

#endif
