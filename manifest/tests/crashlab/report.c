#include "report.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MUTANT_EXAMPLES = 1, LIFE_SECONDS = 120 };

_Noreturn void cl_give_up(const char *why)
{
    (void)fflush(stdout);
    fprintf(stderr, "crashlab: %s\n", why);
    exit(2);
}

void cl_record_child(cl_log *log, const char *dir, void (*fn)(void *arg), void *arg)
{
    (void)mkdir(dir, 0700);
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        cl_give_up("cannot fork");
    }
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)alarm(LIFE_SECONDS);
        cl_record(log, dir);
        fn(arg);
        _exit(0);
    }
    int status;
    if (waitpid(pid, &status, 0) != pid || WIFSIGNALED(status) || WEXITSTATUS(status) == 3) {
        if (WIFSIGNALED(status)) {
            cl_give_up(WTERMSIG(status) == SIGALRM ? "the workload hangs"
                                                   : strsignal(WTERMSIG(status)));
        }
        cl_give_up("the workload failed");
    }
}

void cl_report(const char *title, const cl_tally *tally, bool mutant)
{
    printf("%-28s states=%llu bad=%llu", title, (unsigned long long)tally->states,
           (unsigned long long)tally->bad);
    if (tally->killed) {
        printf(" (%llu by a signal)", (unsigned long long)tally->killed);
    }
    printf("%s\n", !mutant ? "" : tally->bad ? ": caught" : ": NOT CAUGHT");
    uint32_t max = mutant ? MUTANT_EXAMPLES : CL_EXAMPLES;
    for (uint32_t i = 0; i < tally->example_count && i < max; i++) {
        printf("    %s\n", tally->examples[i]);
    }
    (void)fflush(stdout);
}
