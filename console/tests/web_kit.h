/* Requests to a console. */
#ifndef JZT_WEB_KIT_H
#define JZT_WEB_KIT_H

#include "site.h"

#include <doctor.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline int status_of(web_answer answer)
{
    int status = answer.status;
    web_free(&answer);
    return status;
}

static inline void check_error(web_answer answer, int status, const char *error)
{
    char wanted[80];
    (void)snprintf(wanted, sizeof wanted, "\"error\":\"%s\"", error);
    CHECK_EQ(answer.status, status);
    CHECK(web_has(&answer, "{\"ok\":false"));
    CHECK(web_has(&answer, wanted));
    CHECK(web_has(&answer, "\"text\":\""));
    CHECK_STR(web_header(&answer, "Content-Type"), "application/json");
    web_free(&answer);
}

#endif
