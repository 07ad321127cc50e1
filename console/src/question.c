/* The HTTP side: questions to the program. The same one by several browsers at a time is asked
 * once, and its answer is good for 100 ms. */
#include "http.h"

#include "decide.h"
#include "tracer.h"

#include <jzx/ask.h>
#include <jzx/loop.h>
#include <jzx/supervisor.h>

#include <string.h>

enum { ANSWER_MS = 2000, FRESH_MS = 100, TRACERS_MAX = 4, TRACE_MS = 1000, TRACE_EVENTS = 1000 };
enum { TRACE_EVENTS_MAX = 20000, FAREWELL_MS = 8000 };

static const char no_memory[] = "The console is out of memory; try again.";

static void question_free(jzc_question *question)
{
    jzc_text_free(&question->text);
    jzc_cell_give(question->cell);
    *question = (jzc_question){0};
}

/* Whether an answer is good for others, and for a moment. */
static bool is_kept(jzc_route_kind kind)
{
    return kind == JZC_ROUTE_ASK || kind == JZC_ROUTE_STUCK || kind == JZC_ROUTE_DOCTOR ||
           kind == JZC_ROUTE_METRICS || kind == JZC_ROUTE_HISTORY;
}

static jzc_question *question_find(jzc_http *http, const jzc_text *text)
{
    for (size_t i = 0; i < http->question_cap; i++) {
        jzc_question *question = &http->questions[i];
        if (question->text.len == text->len && (question->asked || question->cell != NULL) &&
            memcmp(question->text.bytes, text->bytes, text->len) == 0) {
            return question;
        }
    }
    return NULL;
}

/* A free place, or that of the oldest answer. NULL: all are being asked. */
static jzc_question *question_place(jzc_http *http)
{
    jzc_question *oldest = NULL;
    for (size_t i = 0; i < http->question_cap; i++) {
        jzc_question *question = &http->questions[i];
        if (question->text.len == 0) {
            return question;
        }
        if (!question->asked && (oldest == NULL || question->stale_ns < oldest->stale_ns)) {
            oldest = question;
        }
    }
    if (oldest != NULL) {
        question_free(oldest);
    }
    return oldest;
}

static jzx_actor_id who_knows(const jzc_http *http, const jzc_route *route)
{
    if (route->kind == JZC_ROUTE_HISTORY) {
        return http->keeper;
    }
    return route->waits ? http->patient : http->quick;
}

static jzx_err ask_wire(jzc_http *http, const jzc_question *question)
{
    jzx_ask_opts opts = {.data = question->text.bytes,
                         .len = question->text.len,
                         .tag = JZC_TAG_QUESTION,
                         .flags = JZX_SEND_COPY,
                         .timeout_ms = ANSWER_MS,
                         .arg = (void *)(uintptr_t)question};
    return jzx_ask(http->loop, who_knows(http, question->route), &opts, NULL);
}

static uint32_t at_most(uint64_t value, uint32_t limit)
{
    return value < limit ? (uint32_t)value : limit;
}

static jzx_err ask_tracer(jzc_http *http, const jzc_question *question, const jzc_asked *asked)
{
    jzc_trace_order order;
    jzx_actor_id tracer = JZX_NOBODY;
    if (http->tracers >= TRACERS_MAX) {
        return JZX_ERR_BUSY;
    }
    order.ms = at_most(jzc_asked_ours(asked, "ms", TRACE_MS), JZC_TRACE_MS_MAX);
    order.limit = at_most(jzc_asked_ours(asked, "limit", TRACE_EVENTS), TRACE_EVENTS_MAX);
    order.question_len = (uint32_t)question->text.len;
    memcpy(order.question, question->text.bytes, question->text.len);
    jzx_err err =
        jzx_supervisor_start_dynamic(http->loop, http->traces, &http->setup->program, &tracer);
    if (err != JZX_OK) {
        return err;
    }
    jzx_ask_opts opts = {.data = &order,
                         .len = offsetof(jzc_trace_order, question) + order.question_len,
                         .tag = JZC_TAG_TRACE,
                         .flags = JZX_SEND_COPY,
                         .timeout_ms = order.ms + 2 * ANSWER_MS,
                         .arg = (void *)(uintptr_t)question};
    err = jzx_ask(http->loop, tracer, &opts, NULL);
    if (err != JZX_OK) {
        (void)jzx_kill(http->loop, tracer);
        return err;
    }
    http->tracers++;
    return JZX_OK;
}

static void question_wait(jzc_question *question, jzc_request *request)
{
    request->question = question;
    request->next = question->waiters;
    question->waiters = request;
    MHD_suspend_connection(request->connection);
}

/* No actor is asked for the farewell: it comes with the end. */
static jzx_err question_ask(jzc_http *http, jzc_question *question, const jzc_asked *asked)
{
    if (question->route->kind == JZC_ROUTE_FAREWELL) {
        question->stale_ns = jzx_loop_now(http->loop) + FAREWELL_MS * UINT64_C(1000000);
        return JZX_OK;
    }
    return question->route->kind == JZC_ROUTE_TRACE ? ask_tracer(http, question, asked)
                                                    : ask_wire(http, question);
}

/* Asks anew. The text is transferred. */
static void question_begin(jzc_http *http, jzc_request *request, const jzc_asked *asked,
                           jzc_text *text)
{
    jzc_question *question = question_place(http);
    jzx_err err = JZX_ERR_BUSY;
    if (question != NULL) {
        *question = (jzc_question){.text = *text, .route = request->route, .asked = true};
        *text = (jzc_text){0};
        err = question_ask(http, question, asked);
        if (err == JZX_OK) {
            question_wait(question, request);
            return;
        }
        question_free(question);
    }
    request->cell =
        jzc_cell_error(http, 503, err == JZX_ERR_BUSY ? "BUSY" : "NO_MEMORY",
                       err == JZX_ERR_BUSY ? "Too much is asked at a time; try again." : no_memory);
}

void jzc_question_put(jzc_http *http, jzc_request *request, jzc_asked *asked)
{
    jzc_text text = {0};
    jzc_refusal refusal = jzc_asked_question(asked, &text);
    if (refusal.status != 0) {
        request->cell = jzc_cell_error(http, refusal.status, refusal.error, refusal.text);
        jzc_text_free(&text);
        return;
    }
    bool shared = is_kept(request->route->kind) || request->route->kind == JZC_ROUTE_FAREWELL;
    jzc_question *known = shared ? question_find(http, &text) : NULL;
    if (known == NULL) {
        question_begin(http, request, asked, &text);
    } else if (known->asked) {
        question_wait(known, request);
    } else {
        request->cell = known->cell;
        request->cell->refs++;
    }
    jzc_text_free(&text);
}

/* Why there is no answer; every outcome of an ask has a sentence. */
static jzc_cell *cell_of_outcome(jzc_http *http, uint32_t outcome)
{
    if (outcome == JZX_OUTCOME_TIMED_OUT || outcome == JZX_OUTCOME_EXPIRED) {
        return jzc_cell_error(http, 504, "NOT_ANSWERING",
                              "The program did not answer within 2 seconds; it may be stopped.");
    }
    if (outcome == JZX_OUTCOME_FORGOTTEN) {
        return jzc_cell_error(http, 503, "NO_MEMORY", no_memory);
    }
    return jzc_cell_error(http, 503, "BUSY",
                          "The console could not ask the program just now; try again.");
}

static void question_settle(jzc_question *question, jzc_cell *cell)
{
    jzc_request *waiters = question->waiters;
    question->waiters = NULL;
    question->asked = false;
    while (waiters != NULL) {
        jzc_request *request = waiters;
        waiters = request->next;
        request->next = NULL;
        request->question = NULL;
        request->settled = true;
        request->cell = cell;
        if (cell != NULL) {
            cell->refs++;
        }
        MHD_resume_connection(request->connection);
    }
}

void jzc_question_answered(jzx_context *ctx, jzc_http *http)
{
    const jzx_reply *reply = jzx_reply_of(ctx);
    jzc_question *question = reply->arg;
    jzc_route_kind kind = question->route->kind;
    jzc_cell *cell = NULL;
    http->tracers -= kind == JZC_ROUTE_TRACE;
    if (reply->outcome == JZX_OUTCOME_REPLIED) {
        jzc_answer *answer = jzx_message_take(ctx);
        const char *type = "application/json";
        if (kind == JZC_ROUTE_METRICS && answer != NULL && answer->status == 200) {
            answer = jzc_answer_text_of(answer);
            type = "text/plain; version=0.0.4; charset=utf-8";
        } else if (answer != NULL) {
            answer = jzc_decide(kind, answer);
        }
        cell = jzc_cell_of_answer(http, answer, type);
    }
    if (cell == NULL) {
        cell = cell_of_outcome(http, reply->outcome);
    }
    question_settle(question, cell);
    bool kept = cell != NULL && is_kept(kind);
    if (!kept) {
        jzc_cell_give(cell);
        question_free(question);
        return;
    }
    question->cell = cell;
    question->stale_ns = jzx_loop_now(ctx->loop) + FRESH_MS * UINT64_C(1000000);
}

void jzc_question_forget(jzc_request *request)
{
    jzc_question *question = request->question;
    if (question == NULL) {
        return;
    }
    jzc_request **link = &question->waiters;
    while (*link != request) {
        link = &(*link)->next;
    }
    *link = request->next;
    request->question = NULL;
}

/* Whether the console is being stopped, and whether the program with it. */
static jzc_cell *cell_of_farewell(jzc_http *http, bool stopping)
{
    jzc_text text = {0};
    jzc_text_str(&text, stopping ? "{\"ok\":true,\"stopping\":true,\"own\":"
                                 : "{\"ok\":true,\"stopping\":false,\"own\":");
    jzc_text_str(&text, http->setup->own ? "true}" : "false}");
    jzc_answer *answer = text.failed ? NULL : jzc_answer_new(200, text.bytes, text.len);
    jzc_text_free(&text);
    return jzc_cell_of_answer(http, answer, "application/json");
}

void jzc_questions_look(jzc_http *http, uint64_t now)
{
    for (size_t i = 0; i < http->question_cap; i++) {
        jzc_question *question = &http->questions[i];
        if (question->text.len == 0 || now < question->stale_ns) {
            continue;
        }
        if (question->cell != NULL) {
            question_free(question);
        } else if (question->route->kind == JZC_ROUTE_FAREWELL) {
            jzc_cell *cell = cell_of_farewell(http, false);
            question_settle(question, cell);
            jzc_cell_give(cell);
            question_free(question);
        }
    }
}

void jzc_questions_close(jzc_http *http)
{
    for (size_t i = 0; i < http->question_cap; i++) {
        jzc_question *question = &http->questions[i];
        if (question->waiters != NULL) {
            jzc_cell *cell =
                question->route->kind == JZC_ROUTE_FAREWELL
                    ? cell_of_farewell(http, true)
                    : jzc_cell_error(http, 503, "STOPPING", "The console is being stopped.");
            question_settle(question, cell);
            jzc_cell_give(cell);
        }
        question_free(question);
    }
}
