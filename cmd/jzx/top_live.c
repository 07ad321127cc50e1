#include "top_live.h"

#include "field.h"
#include "find.h"
#include "top_screen.h"
#include "ui.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* BACK_MS     how often `top` looks whether a program that it lost is back
 * LATE_MS     how long an answer may take before that is told
 * SILENT_MS   what "stuck" means in the head
 * MESSAGE_MS  how long a message stays */
enum { BACK_MS = 500, LATE_MS = 1500, SILENT_MS = 200, MESSAGE_MS = 5000 };

/* A question that is under way; 0: none. */
typedef struct live {
    attach *link; /* owned; NULL while the program is gone */
    char *path;   /* owned; where the program was */
    top_state *state;
    uint64_t program_id;
    uint64_t list_id;
    top_window list_window;
    uint64_t page_id;
    uint64_t stuck_id;
    uint64_t order_id;
    bool list_again;  /* a key asked for the list while one was under way */
    bool asked_twice; /* the window did not fit, and was asked for anew */
    int64_t asked_ms;
    int64_t next_ms; /* when to look next */
    int64_t back_ms; /* when to look whether the program is back */
    int64_t said_ms; /* since when a message is shown; 0: none is */
    uint64_t looks;
    bool draw;
    bool afresh;
    top_canvas canvas;
    top_canvas page;
} live;

static int64_t top_live_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void forget_questions(live *l)
{
    l->program_id = l->list_id = l->page_id = l->stuck_id = l->order_id = 0;
    l->list_again = false;
}

/* The program is gone, or does not speak with us any more. */
static void lose(live *l)
{
    if (l->link == NULL) {
        return;
    }
    attach_close(l->link);
    l->link = NULL;
    forget_questions(l);
    l->state->ended = true;
    l->state->late_ms = 0;
    l->state->message[0] = '\0';
    l->draw = true;
}

/* Sends a question; 0 if that did not work. */
static uint64_t ask(live *l, json_t *request)
{
    uint64_t id = 0;
    if (l->link == NULL) {
        json_decref(request);
        return 0;
    }
    switch (attach_send(l->link, request, &id)) {
    case ATTACH_OK:
        l->asked_ms = top_live_now_ms();
        return id;
    case ATTACH_LOST:
        lose(l);
        return 0;
    default:
        top_state_say(l->state, true, "%s", attach_text(l->link));
        l->draw = true;
        return 0;
    }
}

static void ask_list(live *l)
{
    if (l->list_id != 0) {
        l->list_again = true;
        return;
    }
    l->list_again = false;
    l->list_window = top_model_window(&l->state->model);
    l->list_id = ask(l, top_model_request(&l->state->model, &l->list_window));
}

static void ask_page(live *l)
{
    json_t *request = l->page_id == 0 ? top_state_page_request(l->state) : NULL;
    if (request != NULL) {
        l->page_id = ask(l, request);
    }
}

/* One look: whatever is not under way already. */
static void top_live_look(live *l)
{
    if (l->program_id == 0) {
        l->program_id = ask(l, json_pack("{s:s}", "op", "program"));
    }
    if (top_state_has_page(l->state)) {
        ask_page(l);
    } else if (l->list_id == 0) {
        ask_list(l);
    }
}

static void take_program(live *l, const json_t *answer)
{
    if (l->state->model.paused) {
        return;
    }
    l->looks++;
    top_program_take(&l->state->program, answer);
    if (l->state->program.silent && l->stuck_id == 0) {
        l->stuck_id = ask(l, json_pack("{s:s,s:i}", "op", "stuck", "limit_ms", SILENT_MS));
    }
}

static void take_list(live *l, const json_t *answer)
{
    /* Something was pressed meanwhile: this is the answer to an old question. */
    if (l->list_again || l->state->model.paused) {
        return;
    }
    bool fits = top_model_take(&l->state->model, answer, &l->list_window);
    if (!fits && !l->asked_twice) {
        l->asked_twice = true;
        l->list_again = true;
    } else {
        l->asked_twice = false;
    }
}

/* An actor that ended while its page is open stays on the screen as it was. */
static void take_page(live *l, json_t *answer, attach_result result)
{
    if (result != ATTACH_OK) {
        top_state_say(l->state, true, "%s", attach_text(l->link));
    } else {
        top_state_take_page(l->state, json_incref(answer));
    }
}

static void take_order(live *l, attach_result result)
{
    const top_state *state = l->state;
    const char *who = state->target_name[0] != '\0' ? state->target_name : state->target;
    if (result != ATTACH_OK) {
        top_state_say(l->state, true, "%s", attach_text(l->link));
    } else {
        top_state_say(l->state, false, "%s was told to %s.", who, state->kill ? "die" : "stop");
    }
    ask_list(l);
}

static void take(live *l, json_t *answer)
{
    uint64_t id = field_u64(answer, "id");
    attach_result result = attach_look(l->link, answer);
    l->draw = true;
    if (id == l->page_id) {
        l->page_id = 0;
        take_page(l, answer, result);
    } else if (id == l->order_id) {
        l->order_id = 0;
        take_order(l, result);
    } else if (id == l->list_id) {
        l->list_id = 0;
        if (result == ATTACH_OK) {
            take_list(l, answer);
        } else {
            top_state_say(l->state, true, "%s", attach_text(l->link));
        }
        if (l->list_again) {
            ask_list(l);
        }
    } else if (id == l->program_id) {
        l->program_id = 0;
        if (result == ATTACH_OK) {
            take_program(l, answer);
        }
    } else if (id == l->stuck_id) {
        l->stuck_id = 0;
        top_program_take_stuck(&l->state->program, answer);
    }
}

static void take_answers(live *l)
{
    while (l->link != NULL) {
        json_t *answer = NULL;
        attach_result result = attach_next(l->link, 0, &answer);
        if (result == ATTACH_WAIT) {
            return;
        }
        if (result != ATTACH_OK) {
            lose(l);
            return;
        }
        take(l, answer);
        json_decref(answer);
    }
}

/* Greeted, and of the name that we knew. */
static bool is_it(const live *l, const attach *link)
{
    return strcmp(field_text(attach_greeting(link), "name"), l->state->program.name) == 0;
}

static attach *find_again(const live *l)
{
    attach *link = l->path != NULL ? attach_connect(l->path) : NULL;
    if (link != NULL && attach_error(link) == 0 && attach_greet(link, BACK_MS) == ATTACH_OK &&
        is_it(l, link)) {
        return link;
    }
    attach_close(link);
    link = NULL;
    finding all;
    find_all(&all);
    for (size_t i = 0; i < all.count && link == NULL; i++) {
        if (all.programs[i].state == ATTACH_OK && is_it(l, all.programs[i].link)) {
            link = all.programs[i].link;
            all.programs[i].link = NULL;
        }
    }
    find_free(&all);
    return link;
}

static void try_again(live *l)
{
    l->back_ms = top_live_now_ms() + BACK_MS;
    l->link = find_again(l);
    if (l->link == NULL) {
        return;
    }
    free(l->path);
    l->path = strdup(attach_path(l->link));
    l->state->ended = false;
    l->state->waiting = false;
    top_state_say(l->state, false, "%s is back.", l->state->program.name);
    l->next_ms = top_live_now_ms();
    l->draw = true;
}

static void give_order(live *l)
{
    const char *op = l->state->kill ? "kill" : "stop";
    if (l->order_id == 0) {
        l->order_id = ask(l, json_pack("{s:s,s:s}", "op", op, "actor", l->state->target));
    }
}

/* False: that was the last one. */
static bool take_keys(live *l)
{
    for (int key; (key = top_screen_key()) >= 0;) {
        unsigned todo = top_state_key(l->state, key);
        l->said_ms = 0;
        l->draw = true;
        l->afresh = l->afresh || key == TOP_KEY_REDRAW;
        if ((todo & TOP_DO_QUIT) != 0) {
            return false;
        }
        if ((todo & TOP_DO_PAGE) != 0) {
            l->page_id = 0; /* an answer for another page is of no use */
            ask_page(l);
        }
        if ((todo & TOP_DO_LIST) != 0) {
            ask_list(l);
        }
        if ((todo & TOP_DO_ORDER) != 0) {
            give_order(l);
        }
    }
    return true;
}

static void draw(live *l)
{
    int rows = 0;
    int columns = 0;
    top_screen_size(&rows, &columns);
    top_canvas_begin(&l->canvas, rows, columns);
    top_state_draw(l->state, &l->canvas, &l->page);
    top_screen_draw(&l->canvas, l->afresh);
    l->draw = false;
    l->afresh = false;
}

static bool is_waiting_for_answer(const live *l)
{
    return l->program_id != 0 || l->list_id != 0 || l->page_id != 0;
}

static void let_messages_go(live *l, int64_t now)
{
    if (l->state->message[0] == '\0') {
        l->said_ms = 0;
    } else if (l->said_ms == 0) {
        l->said_ms = now;
    } else if (now - l->said_ms >= MESSAGE_MS) {
        l->state->message[0] = '\0';
        l->draw = true;
    }
}

/* What is due by the clock. Returns how long to wait for anything else. */
static int keep_time(live *l)
{
    int64_t now = top_live_now_ms();
    let_messages_go(l, now);
    if (l->link == NULL) {
        if (l->state->waiting && now >= l->back_ms) {
            try_again(l);
        }
        return l->link == NULL ? BACK_MS : 0;
    }
    if (is_waiting_for_answer(l) && now - l->asked_ms >= LATE_MS) {
        l->state->late_ms = (uint64_t)(now - l->asked_ms);
        l->draw = true;
    } else {
        l->state->late_ms = 0;
    }
    if (now >= l->next_ms) {
        l->next_ms = now + l->state->interval_ms;
        if (!is_waiting_for_answer(l) && !l->state->model.paused) {
            top_live_look(l);
        }
    }
    int64_t left = l->next_ms - top_live_now_ms();
    return left < 0 ? 0 : left < LATE_MS ? (int)left : LATE_MS;
}

static void top_live_run(live *l, uint64_t iterations)
{
    while (iterations == 0 || l->looks < iterations) {
        int timeout = keep_time(l);
        if (l->draw) {
            draw(l);
        }
        unsigned events = top_screen_wait(l->link != NULL ? attach_fd(l->link) : -1, timeout);
        if ((events & TOP_EVENT_END) != 0) {
            return;
        }
        if ((events & TOP_EVENT_REDRAW) != 0) {
            l->draw = true;
            l->afresh = true;
        }
        if ((events & TOP_EVENT_ANSWER) != 0) {
            take_answers(l);
        }
        if ((events & TOP_EVENT_KEY) != 0 && !take_keys(l)) {
            return;
        }
    }
}

int top_live(attach *link, top_state *state, uint64_t iterations)
{
    live l = {.link = link, .state = state, .draw = true, .path = strdup(attach_path(link))};
    const char *why = top_screen_open();
    if (why == NULL) {
        /* The head knows the name before the first answer. */
        snprintf(state->program.name, sizeof state->program.name, "%s",
                 field_text(attach_greeting(link), "name"));
        top_live_run(&l, iterations);
        top_screen_close();
    }
    attach_close(l.link);
    free(l.path);
    top_canvas_deinit(&l.canvas);
    top_canvas_deinit(&l.page);
    return why != NULL ? ui_fail("%s", why) : EXIT_FINE;
}
