/* Addresses, listeners and connects of the simulated world, and the rules a test lays on them. */
#include "sim.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIM_UNIX_MAX 107u /* what fits into a sockaddr_un */
#define SIM_BACKLOG_MAX 4096u

typedef struct sim_address {
    char text[JZX_ADDRESS_MAX + 1]; /* canonical */
    bool local;                     /* a Unix socket */
    bool v6;
    bool any; /* every address of the machine */
    uint32_t port;
} sim_address;

static bool port_parse(const char *text, uint32_t *out_port)
{
    uint32_t port = 0;
    size_t digits = 0;
    for (; text[digits] >= '0' && text[digits] <= '9' && digits < 6; digits++) {
        port = port * 10 + (uint32_t)(text[digits] - '0');
    }
    *out_port = port;
    bool padded = digits > 1 && text[0] == '0';
    return digits > 0 && !padded && text[digits] == '\0' && port <= 65535;
}

static void address_format(sim_address *a, const char *host)
{
    (void)snprintf(a->text, sizeof a->text, a->v6 ? "[%s]:%u" : "%s:%u", host, (unsigned)a->port);
}

static jzx_err address_parse(const char *text, sim_address *out)
{
    sim_address a = {0};
    char host[INET6_ADDRSTRLEN] = "";
    unsigned char raw[16];
    if (text == NULL || strlen(text) > JZX_ADDRESS_MAX) {
        return JZX_ERR_BAD_ADDRESS;
    }
    if (strncmp(text, "unix:", 5) == 0) {
        size_t len = strlen(text + 5);
        if (len == 0 || len > SIM_UNIX_MAX || strcmp(text + 5, "@") == 0) {
            return JZX_ERR_BAD_ADDRESS;
        }
        a.local = true;
        (void)snprintf(a.text, sizeof a.text, "%s", text);
        *out = a;
        return JZX_OK;
    }
    a.v6 = text[0] == '[';
    const char *begin = text + (a.v6 ? 1 : 0);
    const char *end = a.v6 ? strstr(begin, "]:") : strrchr(begin, ':');
    if (end == NULL || (size_t)(end - begin) >= sizeof host) {
        return JZX_ERR_BAD_ADDRESS;
    }
    memcpy(host, begin, (size_t)(end - begin));
    int family = a.v6 ? AF_INET6 : AF_INET;
    if (inet_pton(family, host, raw) != 1 || !port_parse(end + (a.v6 ? 2 : 1), &a.port)) {
        return JZX_ERR_BAD_ADDRESS;
    }
    static const unsigned char zeros[16];
    a.any = memcmp(raw, zeros, a.v6 ? 16 : 4) == 0;
    inet_ntop(family, raw, host, sizeof host);
    address_format(&a, host);
    *out = a;
    return JZX_OK;
}

static const sim_rule *rule_find(const jzx_sim *sim, const char *address)
{
    for (size_t i = 0; i < sim->rules_len; i++) {
        if (strcmp(sim->rules[i].address, address) == 0) {
            return &sim->rules[i];
        }
    }
    return NULL;
}

static bool is_partitioned(const jzx_sim *sim, const char *address)
{
    const sim_rule *rule = rule_find(sim, address);
    return rule != NULL && rule->partitioned;
}

static bool is_refused(const jzx_sim *sim, const char *address)
{
    const sim_rule *rule = rule_find(sim, address);
    return rule != NULL && rule->refused;
}

/* An exact match wins over a listener on every address of the machine. */
static sim_fd *listener_find(jzx_sim *sim, const sim_address *a)
{
    sim_fd *any = NULL;
    for (size_t i = 0; i < sim->live_len; i++) {
        sim_fd *f = sim->live[i];
        sim_address own;
        if (f->kind != SIM_LISTENER || address_parse(f->address, &own) != JZX_OK) {
            continue;
        }
        if (strcmp(own.text, a->text) == 0) {
            return f;
        }
        if (own.any && !a->local && own.v6 == a->v6 && own.port == a->port) {
            any = f;
        }
    }
    return any;
}

/* JZX_OK: the connection waits to be accepted. JZX_ERR_AGAIN: no room in the backlog. */
static jzx_err establish(jzx_sim *sim, const sim_address *a, sim_conn *conn)
{
    sim_fd *listener = listener_find(sim, a);
    if (listener == NULL || is_refused(sim, a->text)) {
        return JZX_ERR_CONN_REFUSED;
    }
    if (listener->waiting_count == listener->backlog) {
        return JZX_ERR_AGAIN;
    }
    listener->waiting[listener->waiting_count++] = conn;
    conn->refs++;
    return JZX_OK;
}

static void connect_try(jzx_sim *sim, sim_fd *f)
{
    sim_address a;
    jzx_err err = address_parse(f->address, &a);
    if (err == JZX_OK) {
        err = establish(sim, &a, f->conn);
    }
    if (err == JZX_ERR_AGAIN) {
        return;
    }
    sim->connecting--;
    if (err == JZX_OK) {
        f->kind = SIM_STREAM;
    } else {
        f->connect_err = err;
    }
}

void jzi_sim_net_advance(jzx_sim *sim)
{
    for (size_t i = 0; i < sim->live_len && sim->connecting > 0; i++) {
        sim_fd *f = sim->live[i];
        if (f->kind == SIM_CONNECTING && f->connect_err == JZX_OK && f->connect_due <= sim->now &&
            !is_partitioned(sim, f->address)) {
            connect_try(sim, f);
        }
    }
}

uint64_t jzi_sim_connect_due(const jzx_sim *sim, const sim_fd *f)
{
    return f->connect_err != JZX_OK || is_partitioned(sim, f->address) ? SIM_NEVER : f->connect_due;
}

void jzi_sim_listener_end(jzx_sim *sim, sim_fd *f)
{
    for (uint32_t i = 0; i < f->waiting_count; i++) {
        f->waiting[i]->reset = true;
        jzi_sim_conn_drop(sim, f->waiting[i], 1);
    }
    free(f->waiting);
}

static void client_address(jzx_sim *sim, const sim_address *target, char *out, size_t cap)
{
    if (target->local) {
        (void)snprintf(out, cap, "unix:");
        return;
    }
    (void)snprintf(out, cap, target->v6 ? "[::1]:%u" : "127.0.0.1:%u", (unsigned)sim->next_port);
    sim->next_port = sim->next_port == 65535 ? 40000 : sim->next_port + 1;
}

static jzx_err connect_start(jzx_sim *sim, const sim_address *a, bool loops, sim_fd **out)
{
    char client[JZX_ADDRESS_MAX + 1];
    sim_fd *f;
    client_address(sim, a, client, sizeof client);
    sim_conn *conn = jzi_sim_conn_new(a->text, client);
    if (conn == NULL || jzi_sim_fd_new(sim, SIM_CONNECTING, loops, &f) != JZX_OK) {
        free(conn);
        return JZX_ERR_NO_MEMORY;
    }
    f->conn = conn;
    f->side = 0;
    conn->fd[0] = f->fd;
    (void)snprintf(f->address, sizeof f->address, "%s", a->text);
    *out = f;
    return JZX_OK;
}

/* TCP always has to wait for the other side's answer; a Unix socket knows at once. */
static jzx_err env_connect(void *ctx, const char *address, int *out_fd)
{
    jzx_sim *sim = ctx;
    sim_address a;
    sim_fd *f;
    jzx_err err = address_parse(address, &a);
    if (err == JZX_OK) {
        err = connect_start(sim, &a, true, &f);
    }
    if (err != JZX_OK) {
        return err;
    }
    f->connect_due = sim->now + jzi_sim_latency(sim);
    jzi_sim_note(sim, SIM_TRACE_CONNECT, f->fd, 0, JZX_OK);
    if (a.local && !is_partitioned(sim, a.text) && f->connect_due == sim->now) {
        connect_try(sim, f);
    }
    if (f->connect_err != JZX_OK) {
        err = f->connect_err;
        jzi_sim_fd_free(sim, f);
        return err;
    }
    *out_fd = f->fd;
    return f->kind == SIM_STREAM ? JZX_OK : JZX_ERR_AGAIN;
}

static jzx_err env_connected(void *ctx, int fd)
{
    jzx_sim *sim = ctx;
    sim_fd *f = jzi_sim_get(sim, fd);
    jzx_err err = JZX_OK;
    if (f == NULL || f->conn == NULL) {
        return JZX_ERR_BAD_FD;
    }
    jzi_sim_net_advance(sim);
    if (!jzi_sim_take_failure(f, &err)) {
        err = f->conn->reset ? JZX_ERR_CONN_RESET : f->connect_err;
    }
    if (err == JZX_OK && f->kind == SIM_CONNECTING) {
        err = JZX_ERR_AGAIN;
    }
    jzi_sim_note(sim, SIM_TRACE_CONNECT, fd, 1, err);
    return err;
}

jzx_err jzx_sim_connect(jzx_sim *sim, const char *address, int *out_fd)
{
    sim_address a;
    sim_fd *f;
    jzx_err err = address_parse(address, &a);
    if (err != JZX_OK) {
        return err;
    }
    if (is_partitioned(sim, a.text)) {
        return JZX_ERR_TIMED_OUT;
    }
    err = connect_start(sim, &a, false, &f);
    if (err != JZX_OK) {
        return err;
    }
    connect_try(sim, f);
    if (f->kind != SIM_STREAM) {
        err = f->connect_err == JZX_OK ? JZX_ERR_AGAIN : f->connect_err;
        jzi_sim_fd_free(sim, f);
        return err;
    }
    jzi_sim_note(sim, SIM_TRACE_CONNECT, f->fd, 1, JZX_OK);
    *out_fd = f->fd;
    return JZX_OK;
}

static jzx_err listen_on(jzx_sim *sim, const char *address, uint32_t backlog, bool loops,
                         int *out_fd)
{
    sim_address a;
    sim_fd *f;
    jzx_err err = address_parse(address, &a);
    if (err != JZX_OK) {
        return err;
    }
    if (!a.local && a.port == 0) {
        char host[JZX_ADDRESS_MAX + 1];
        (void)snprintf(host, sizeof host, "%s", a.text);
        *strrchr(host, ':') = '\0';
        (void)snprintf(a.text, sizeof a.text, "%.*s:%u", INET6_ADDRSTRLEN + 2, host,
                       (unsigned)sim->next_port++);
    }
    for (size_t i = 0; i < sim->live_len; i++) {
        if (sim->live[i]->kind == SIM_LISTENER && strcmp(sim->live[i]->address, a.text) == 0) {
            return JZX_ERR_ADDRESS_IN_USE;
        }
    }
    err = jzi_sim_fd_new(sim, SIM_LISTENER, loops, &f);
    if (err != JZX_OK) {
        return err;
    }
    f->backlog = backlog == 0 ? 1 : backlog < SIM_BACKLOG_MAX ? backlog : SIM_BACKLOG_MAX;
    f->waiting = calloc(f->backlog, sizeof(sim_conn *));
    if (f->waiting == NULL) {
        jzi_sim_fd_free(sim, f);
        return JZX_ERR_NO_MEMORY;
    }
    (void)snprintf(f->address, sizeof f->address, "%s", a.text);
    jzi_sim_note(sim, SIM_TRACE_OPEN, f->fd, 0, JZX_OK);
    *out_fd = f->fd;
    return JZX_OK;
}

static jzx_err accept_on(jzx_sim *sim, int fd, bool loops, int *out_fd)
{
    sim_fd *listener = jzi_sim_get(sim, fd);
    sim_fd *f;
    jzx_err err = JZX_OK;
    if (listener == NULL || listener->kind != SIM_LISTENER) {
        return JZX_ERR_BAD_FD;
    }
    if (jzi_sim_take_failure(listener, &err)) {
        return err;
    }
    jzi_sim_net_advance(sim);
    if (listener->waiting_count == 0) {
        return JZX_ERR_AGAIN;
    }
    err = jzi_sim_fd_new(sim, SIM_STREAM, loops, &f);
    if (err != JZX_OK) {
        return err;
    }
    f->conn = listener->waiting[0];
    f->side = 1;
    f->conn->fd[1] = f->fd;
    listener->waiting_count--;
    memmove(listener->waiting, listener->waiting + 1, listener->waiting_count * sizeof(sim_conn *));
    jzi_sim_note(sim, SIM_TRACE_ACCEPT, f->fd, 0, JZX_OK);
    *out_fd = f->fd;
    return JZX_OK;
}

static jzx_err env_listen(void *ctx, const char *address, uint32_t backlog, int *out_fd)
{
    return listen_on(ctx, address, backlog, true, out_fd);
}

static jzx_err env_accept(void *ctx, int fd, int *out_fd)
{
    return accept_on(ctx, fd, true, out_fd);
}

jzx_err jzx_sim_listen(jzx_sim *sim, const char *address, int *out_fd)
{
    return listen_on(sim, address, SIM_BACKLOG_MAX, false, out_fd);
}

jzx_err jzx_sim_accept(jzx_sim *sim, int listener, int *out_fd)
{
    return accept_on(sim, listener, false, out_fd);
}

static jzx_err env_shutdown(void *ctx, int fd)
{
    return jzx_sim_shutdown(ctx, fd);
}

static jzx_err env_address(void *ctx, int fd, int peer, char *out, size_t cap)
{
    const sim_fd *f = jzi_sim_get(ctx, fd);
    const char *text = NULL;
    if (f == NULL) {
        return JZX_ERR_BAD_FD;
    }
    if (f->conn != NULL) {
        bool ours = f->side == 0 ? peer == 0 : peer != 0;
        text = ours ? f->conn->client : f->conn->address;
    } else if (f->kind == SIM_LISTENER && peer == 0) {
        text = f->address;
    }
    if (text == NULL) {
        return JZX_ERR_CLOSED; /* a listener has no peer */
    }
    if (strlen(text) >= cap) {
        return JZX_ERR_TOO_BIG;
    }
    (void)snprintf(out, cap, "%s", text);
    return JZX_OK;
}

void jzi_sim_net_env(jzx_env *env)
{
    env->sock_listen = env_listen;
    env->sock_accept = env_accept;
    env->sock_connect = env_connect;
    env->sock_connected = env_connected;
    env->sock_shutdown = env_shutdown;
    env->sock_address = env_address;
}

/* The rule for an address, made if there is none yet. */
static jzx_err rule_get(jzx_sim *sim, const char *address, sim_rule **out)
{
    sim_address a;
    jzx_err err = address_parse(address, &a);
    if (err != JZX_OK) {
        return err;
    }
    for (size_t i = 0; i < sim->rules_len; i++) {
        if (strcmp(sim->rules[i].address, a.text) == 0) {
            *out = &sim->rules[i];
            return JZX_OK;
        }
    }
    sim_rule *rules =
        jzi_sim_reserve(sim->rules, sim->rules_len, &sim->rules_cap, sizeof *sim->rules);
    if (rules == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    sim->rules = rules;
    *out = &sim->rules[sim->rules_len++];
    **out = (sim_rule){0};
    (void)snprintf((*out)->address, sizeof(*out)->address, "%s", a.text);
    return JZX_OK;
}

/* Calls fn for each connection to an address that fn has not been given yet, accepted or not. */
static size_t conns_visit(jzx_sim *sim, const char *address,
                          bool (*fn)(jzx_sim *sim, sim_conn *conn, bool on), bool on)
{
    size_t count = 0;
    for (size_t i = 0; i < sim->live_len; i++) {
        sim_fd *f = sim->live[i];
        if (f->conn != NULL && strcmp(f->conn->address, address) == 0) {
            count += fn(sim, f->conn, on);
        }
        for (uint32_t k = 0; k < f->waiting_count; k++) {
            if (strcmp(f->waiting[k]->address, address) == 0) {
                count += fn(sim, f->waiting[k], on);
            }
        }
    }
    return count;
}

static bool conn_hold(jzx_sim *sim, sim_conn *conn, bool on)
{
    bool changed = conn->held != on;
    jzi_sim_conn_hold(sim, conn, on);
    return changed;
}

static bool conn_reset(jzx_sim *sim, sim_conn *conn, bool on)
{
    (void)sim;
    bool changed = conn->reset != on;
    conn->reset = on;
    return changed;
}

jzx_err jzx_sim_partition(jzx_sim *sim, const char *address, int on)
{
    sim_rule *rule;
    jzx_err err = rule_get(sim, address, &rule);
    if (err != JZX_OK) {
        return err;
    }
    rule->partitioned = on != 0;
    conns_visit(sim, rule->address, conn_hold, on != 0);
    return JZX_OK;
}

jzx_err jzx_sim_refuse(jzx_sim *sim, const char *address, int on)
{
    sim_rule *rule;
    jzx_err err = rule_get(sim, address, &rule);
    if (err == JZX_OK) {
        rule->refused = on != 0;
    }
    return err;
}

size_t jzx_sim_reset_address(jzx_sim *sim, const char *address)
{
    sim_address a;
    return address_parse(address, &a) == JZX_OK ? conns_visit(sim, a.text, conn_reset, true) : 0;
}
