#define _GNU_SOURCE
#include "puppet.h"

#include <stdarg.h>
#include <time.h>

char said[SAID_MAX];
static size_t said_len;
static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;

uint64_t now_ns(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 * MS + (uint64_t)ts.tv_nsec;
}

void pause_us(uint64_t us)
{
    struct timespec ts = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000 * 1000)};
    (void)nanosleep(&ts, NULL);
}

void said_clear(void)
{
    pthread_mutex_lock(&said_lock);
    said_len = 0;
    said[0] = '\0';
    pthread_mutex_unlock(&said_lock);
}

void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&said_lock);
    if (said_len > 0 && said_len < SAID_MAX - 1) {
        said[said_len++] = ' ';
    }
    int len = vsnprintf(said + said_len, SAID_MAX - said_len, format, args);
    size_t room = SAID_MAX - 1 - said_len;
    said_len += (size_t)len < room ? (size_t)len : room;
    pthread_mutex_unlock(&said_lock);
    va_end(args);
}

bool said_before(const char *first, const char *second)
{
    const char *a = strstr(said, first);
    const char *b = strstr(said, second);
    return a != NULL && b != NULL && a < b;
}

size_t said_times(const char *text)
{
    size_t times = 0;
    for (const char *at = said; (at = strstr(at, text)) != NULL; at++) {
        times++;
    }
    return times;
}

const char *reason_text(const jzx_reason *reason)
{
    static _Thread_local char text[64];
    if (reason->code == 0) {
        snprintf(text, sizeof text, "%s", jzx_reason_name(reason->kind));
    } else {
        snprintf(text, sizeof text, "%s %d", jzx_reason_name(reason->kind), (int)reason->code);
    }
    return text;
}

bool puppet_speaks(const puppet *self)
{
    return !self->mute && self->cast != NULL && (self->cast->flags & CAST_JOURNAL) != 0;
}

uint64_t puppet_tick(puppet *self)
{
    return self->cast == NULL ? 0 : atomic_fetch_add(&self->cast->seq, 1) + 1;
}

/* The log. */

uint64_t sum_of(const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    uint64_t sum = 1469598103;
    for (size_t i = 0; i < len; i++) {
        sum = (sum ^ at[i]) * 1099511;
    }
    return sum;
}

static void puppet_note(puppet *self, sight n)
{
    if (self->mute || (self->log_max != 0 && self->log_len >= self->log_max)) {
        return;
    }
    n.seq = puppet_tick(self);
    n.at_ns = now_ns();
    n.life = atomic_load(&self->ups);
    pthread_mutex_lock(&self->lock);
    if (self->log_len == self->log_cap) {
        self->log_cap = self->log_cap == 0 ? 16 : 2 * self->log_cap;
        self->log = realloc(self->log, self->log_cap * sizeof *self->log);
    }
    self->log[self->log_len++] = n;
    pthread_mutex_unlock(&self->lock);
}

static void note_signal(puppet *self, const jzx_signal *signal)
{
    puppet_note(self, (sight){.signal = signal->kind,
                              .sender = signal->from,
                              .ref = signal->ref,
                              .incarnation = signal->incarnation,
                              .reason = *signal->reason});
}

static void note_message(puppet *self, const jzx_message *msg)
{
    sight n = {.tag = msg->tag,
               .kind = msg->kind,
               .flags = msg->flags,
               .len = msg->len,
               .sender = msg->sender};
    if (msg->flags & JZX_MSG_VALUE) {
        n.u64 = msg->u64;
    } else if (msg->kind == JZX_KIND_NOTICE && msg->tag == JZX_TAG_ROOM) {
        const jzx_room_notice *room = msg->data;
        n.err = room->err;
        n.u64 = room->room;
        n.sender = room->target;
    } else if (msg->kind == JZX_KIND_USER && msg->data != NULL && self->w != NULL) {
        n.sum = sum_of(msg->data, msg->len);
    }
    puppet_note(self, n);
}

size_t puppet_log_len(puppet *self)
{
    pthread_mutex_lock(&self->lock);
    size_t len = self->log_len;
    pthread_mutex_unlock(&self->lock);
    return len;
}

sight puppet_sight(puppet *self, size_t index)
{
    sight n = {0};
    pthread_mutex_lock(&self->lock);
    if (index < self->log_len) {
        n = self->log[index];
    }
    pthread_mutex_unlock(&self->lock);
    return n;
}

void puppet_log_clear(puppet *self)
{
    pthread_mutex_lock(&self->lock);
    self->log_len = 0;
    pthread_mutex_unlock(&self->lock);
}

size_t puppet_count(puppet *self, uint32_t signal, uint32_t tag, sight *last)
{
    size_t count = 0;
    pthread_mutex_lock(&self->lock);
    for (size_t i = 0; i < self->log_len; i++) {
        const sight *n = &self->log[i];
        if (n->signal == signal && (signal != 0 || n->tag == tag)) {
            count++;
            if (last != NULL) {
                *last = *n;
            }
        }
    }
    pthread_mutex_unlock(&self->lock);
    return count;
}

size_t puppet_saw(puppet *self, uint32_t tag)
{
    return puppet_count(self, 0, tag, NULL);
}

size_t puppet_signals(puppet *self, uint32_t signal)
{
    return puppet_count(self, signal, 0, NULL);
}

jzx_reason puppet_reason(puppet *self)
{
    pthread_mutex_lock(&self->lock);
    jzx_reason reason = self->ended;
    pthread_mutex_unlock(&self->lock);
    return reason;
}

void check_log(int line, puppet *self, const uint32_t *want, size_t want_len)
{
    static uint32_t got[4096];
    size_t len = 0;
    for (size_t i = 0; i < self->log_len && len < COUNT_OF(got); i++) {
        if (self->log[i].signal == 0) {
            got[len++] = self->log[i].tag;
        }
    }
    check_tags(line, got, len, want, want_len);
}

/* Its code. No two workers are ever in it (R34); a puppet of a rig may also be left by a jump. */

static void puppet_enter(puppet *self)
{
    if (self->w != NULL) {
        CHECK_EQ(atomic_exchange(&self->busy, 1), 0);
    }
}

static jzx_behavior_result puppet_leave(puppet *self, jzx_behavior_result result)
{
    if (self->w != NULL) {
        CHECK_EQ(atomic_exchange(&self->busy, 0), 1);
    }
    return result;
}

void puppet_panic(jzx_context *ctx, puppet *self, int32_t code)
{
    (void)puppet_leave(self, JZX_BEHAVIOR_OK);
    jzx_panic(ctx, code, "as told");
}

static jzx_behavior_result puppet_answer(jzx_context *ctx, puppet *self, uint32_t what)
{
    if (self->during != NULL) {
        self->during(ctx, self, what);
    }
    if (self->panics[what]) {
        puppet_panic(ctx, self, (int32_t)what + 100);
    }
    return self->answer[what];
}

jzx_behavior_result puppet_init(jzx_context *ctx, void *arg)
{
    puppet *self = arg;
    self->turns++;
    puppet_enter(self);
    CHECK(ctx->state == NULL);
    CHECK(!atomic_load(&self->up));
    if (puppet_speaks(self)) {
        say("%s.init", self->name);
    }
    atomic_store(&self->id, ctx->self);
    atomic_store(&self->init_seq, puppet_tick(self));
    atomic_fetch_add(&self->inits, 1);
    jzx_behavior_result result = puppet_answer(ctx, self, IN_INIT);
    if (result == JZX_BEHAVIOR_OK) {
        ctx->state = self;
        atomic_store(&self->up, true);
        atomic_fetch_add(&self->ups, 1);
    }
    return puppet_leave(self, result);
}

void puppet_deinit(jzx_context *ctx)
{
    puppet *self = ctx->state;
    if (self == NULL) {
        return; /* it declined to start */
    }
    self->turns++;
    puppet_enter(self);
    CHECK(self->bare || atomic_exchange(&self->up, false));
    atomic_store(&self->deinit_seq, puppet_tick(self));
    atomic_fetch_add(&self->deinits, 1);
    if (puppet_speaks(self)) {
        say("%s.deinit", self->name);
    }
    (void)puppet_leave(self, puppet_answer(ctx, self, IN_DEINIT));
}

static void say_signal(const puppet *self, const jzx_signal *signal)
{
    const char *kind = jzx_signal_name(signal->kind);
    if (signal->kind >= JZX_SIGNAL_TERMINATED) {
        say("%s<%s %s %s>", self->name, kind, cast_name_of(self->cast, signal->from),
            reason_text(signal->reason));
    } else if (signal->kind >= JZX_SIGNAL_PRE_RESTART) {
        say("%s.%s(%s)", self->name, kind, reason_text(signal->reason));
    } else {
        say("%s.%s", self->name, kind);
    }
}

/* Inside of enter and leave. */
static jzx_behavior_result take_signal(jzx_context *ctx, const jzx_signal *signal)
{
    puppet *self = ctx->state;
    CHECK(atomic_load(&self->up));
    CHECK(signal->kind >= JZX_SIGNAL_PRE_RESTART || signal->from == ctx->self);
    note_signal(self, signal);
    if (puppet_speaks(self)) {
        say_signal(self, signal);
    }
    self->signal = signal;
    return puppet_answer(ctx, self, signal->kind);
}

jzx_behavior_result puppet_signal(jzx_context *ctx, const jzx_signal *signal)
{
    puppet *self = ctx->state;
    REQUIRE(self != NULL && signal->reason != NULL && signal->kind < IN_DEINIT);
    self->turns++;
    puppet_enter(self);
    return puppet_leave(self, take_signal(ctx, signal));
}

void puppet_stay(puppet *self)
{
    uint64_t end = now_ns() + WAIT_LIMIT_MS * MS;
    atomic_store(&self->held, 1);
    while (atomic_load(&self->released) == 0 && now_ns() < end) {
        pause_us(100);
    }
    atomic_store(&self->held, 0);
}

void puppet_release(puppet *self)
{
    atomic_store(&self->released, 1);
}

static void puppet_run_call(jzx_context *ctx, puppet *self)
{
    if (self->call != NULL) {
        self->call(ctx, self);
    } else {
        self->call_with(ctx, self, self->call_arg);
    }
    atomic_store(&self->call_done, 1);
}

jzx_behavior_result puppet_obey(jzx_context *ctx, uint32_t tag, puppet *self)
{
    switch (tag) {
    case T_FAIL:
        return jzx_fail(ctx, 7, "as told");
    case T_PANIC:
        puppet_panic(ctx, self, 8);
    case T_STOP:
        return JZX_BEHAVIOR_STOP;
    case T_ODD:
        return (jzx_behavior_result)77;
    case T_DEFER:
        return JZX_BEHAVIOR_DEFER;
    case T_SELF_STOP:
        CHECK_OK(jzx_stop(ctx->loop, ctx->self));
        break;
    case T_SELF_DRAIN:
        CHECK_OK(jzx_stop_drained(ctx->loop, ctx->self));
        break;
    case T_SELF_KILL:
        CHECK_OK(jzx_kill(ctx->loop, ctx->self));
        break;
    case T_CALL:
        puppet_run_call(ctx, self);
        break;
    case T_HOLD_SOON:
        CHECK_OK(jzx_send_after(ctx->loop, ctx->self, 0, NULL, 0, T_HOLD, NULL));
        break;
    case T_HOLD:
        puppet_stay(self);
        break;
    default:
        break;
    }
    return JZX_BEHAVIOR_OK;
}

static bool is_order(uint32_t tag)
{
    return tag >= T_FAIL && tag < T_ORDERS;
}

static void say_message(const puppet *self, uint32_t tag)
{
    static const char *const orders[] = {"fail",  "panic",     "stop",       "odd",
                                         "defer", "self_stop", "self_drain", "self_kill"};
    if (tag >= JZX_TAG_SYSTEM_FIRST) {
        say("%s:room", self->name);
    } else if (!is_order(tag)) {
        say("%s:%x", self->name, (unsigned)tag);
    } else if (tag < T_CALL) {
        say("%s:%s", self->name, orders[tag - T_FAIL]);
    }
}

jzx_behavior_result puppet_behavior(jzx_context *ctx, const jzx_message *msg)
{
    puppet *self = ctx->state;
    self->turns++;
    const jzx_signal *signal = jzx_message_signal(msg);
    if (signal != NULL && self->bare) {
        return JZX_BEHAVIOR_OK; /* news of children has tests of its own */
    }
    puppet_enter(self);
    if (signal != NULL) { /* only without on_signal */
        return puppet_leave(self, take_signal(ctx, signal));
    }
    CHECK(self->bare || atomic_load(&self->up));
    atomic_fetch_add(&self->handled, 1);
    self->msg = msg;
    if (puppet_speaks(self)) {
        say_message(self, msg->tag);
    }
    if (is_order(msg->tag)) {
        return puppet_leave(self, puppet_obey(ctx, msg->tag, self));
    }
    note_message(self, msg);
    atomic_fetch_add(&self->worked, 1);
    return puppet_leave(self, self->on == NULL ? JZX_BEHAVIOR_OK : self->on(ctx, msg, self));
}

bool puppet_is_up(const puppet *self)
{
    return atomic_load(&self->ups) > atomic_load(&self->deinits);
}
