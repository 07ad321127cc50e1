#include "lines.h"

#include <stdlib.h>
#include <string.h>

/* A client with nothing waiting costs no memory: that is most clients, most of the time. */
static void forget_taken(lines *in)
{
    in->len -= in->at;
    if (in->len == 0) {
        lines_free(in);
    } else if (in->at > 0) {
        memmove(in->bytes, in->bytes + in->at, in->len);
    }
    in->at = 0;
}

int lines_add(lines *in, const char *bytes, size_t len)
{
    forget_taken(in);
    char *more = realloc(in->bytes, in->len + len + 1);
    if (more == NULL) {
        return 0;
    }
    memcpy(more + in->len, bytes, len);
    in->bytes = more;
    in->len += len;
    return 1;
}

char *lines_take(lines *in, size_t longest, size_t *len)
{
    while (in->at < in->len) {
        char *line = in->bytes + in->at;
        size_t rest = in->len - in->at;
        char *end = memchr(line, '\n', rest);
        int whole = end != NULL;
        if (!whole && !in->skipping && rest <= longest) {
            break;
        }
        int skipped = in->skipping;
        *len = whole ? (size_t)(end - line) : rest;
        line[*len] = '\0';
        in->at += *len + (size_t)whole;
        in->skipping = !whole;
        if (!skipped) {
            return line;
        }
    }
    forget_taken(in);
    return NULL;
}

void lines_put_back(lines *in, char *line, size_t len)
{
    line[len] = '\n';
    in->at = (size_t)(line - in->bytes);
}

void lines_free(lines *in)
{
    free(in->bytes);
    in->bytes = NULL;
}
