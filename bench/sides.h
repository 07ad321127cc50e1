/* The sides of all workloads, by the file that holds them. Each fills in *out and returns, or ends
 * the process with a sentence. */
#ifndef JZX_BENCH_SIDES_H
#define JZX_BENCH_SIDES_H

#include "bench.h"

/* raw_messages.c: one ring and an indirect call per message. */
void bench_raw_pingpong(const bench_run *run, bench_sample *out);
void bench_raw_counting(const bench_run *run, bench_sample *out);
void bench_raw_counting2p(const bench_run *run, bench_sample *out);
void bench_raw_ring(const bench_run *run, bench_sample *out);
void bench_raw_big(const bench_run *run, bench_sample *out);
void bench_raw_fsm(const bench_run *run, bench_sample *out); /* a switch in an actor */
void bench_raw_fjcreate(const bench_run *run, bench_sample *out);
void bench_raw_fjcreate_chunked(const bench_run *run, bench_sample *out);
void bench_raw_idle(const bench_run *run, bench_sample *out);
void bench_raw_fairness(const bench_run *run, bench_sample *out);

/* jzx_flow.c: items through three stages; raw is by hand, with a window. */
void bench_raw_flow(const bench_run *run, bench_sample *out);
void bench_jzx_flow(const bench_run *run, bench_sample *out);

/* loop.c: a loop with the default configuration. Steady loops have no budgets of time. */
jzx_loop *bench_loop_open(void);
/* With budgets of its own; 0 is the default. */
jzx_loop *bench_loop_open_with(uint32_t turn_budget_us, uint32_t tick_budget_us);
void bench_loop_set_steady(void);

/* Where the actors of a side run: one loop, a pool of two workers, or two pinned loops of a system
 * with one CPU each. `one` and `two` are names for jzx_spawn_opts.dispatcher; NULL but when pinned.
 */
typedef struct bench_stage {
    jzx_loop *loop;
    struct jzx_system *system; /* NULL but when pinned */
    const char *one;
    const char *two;
} bench_stage;
bench_stage bench_stage_loop(void);
bench_stage bench_stage_pool(void);
bench_stage bench_stage_pinned(void);
void bench_stage_run(const bench_stage *stage);
void bench_stage_end(jzx_loop *loop); /* inside an actor: makes the run return */
void bench_stage_close(const bench_stage *stage);

/* jzx_messages.c */
void bench_jzx_pingpong(const bench_run *run, bench_sample *out);
void bench_jzx_counting(const bench_run *run, bench_sample *out);
void bench_jzx_counting2p(const bench_run *run, bench_sample *out);
void bench_jzx_ring(const bench_run *run, bench_sample *out);
void bench_jzx_big(const bench_run *run, bench_sample *out);
void bench_jzx_fsm(const bench_run *run, bench_sample *out);
void bench_jzx_fairness(const bench_run *run, bench_sample *out);
void bench_jzx_pingpong_2t(const bench_run *run, bench_sample *out);
void bench_jzx_pingpong_pinned(const bench_run *run, bench_sample *out);
void bench_jzx_counting_2t(const bench_run *run, bench_sample *out);
void bench_jzx_counting_pinned(const bench_run *run, bench_sample *out);
void bench_jzx_counting2p_2t(const bench_run *run, bench_sample *out);
void bench_jzx_ring_2t(const bench_run *run, bench_sample *out);
void bench_jzx_big_2t(const bench_run *run, bench_sample *out);

/* jzx_router.c: straight to the workers; a router written by hand; the library's. */
void bench_raw_router_direct(const bench_run *run, bench_sample *out);
void bench_raw_router(const bench_run *run, bench_sample *out);
void bench_jzx_router(const bench_run *run, bench_sample *out);
void bench_jzx_router_least(const bench_run *run, bench_sample *out);
void bench_jzx_router_hash(const bench_run *run, bench_sample *out);

/* jzx_ask.c */
void bench_jzx_ask(const bench_run *run, bench_sample *out);
void bench_jzx_ask_2t(const bench_run *run, bench_sample *out);

/* jzx_bus.c: raw is a loop of sends with a counted payload. */
void bench_raw_bus1(const bench_run *run, bench_sample *out);
void bench_jzx_bus1(const bench_run *run, bench_sample *out);
void bench_raw_bus10(const bench_run *run, bench_sample *out);
void bench_jzx_bus10(const bench_run *run, bench_sample *out);
void bench_raw_bus1000(const bench_run *run, bench_sample *out);
void bench_jzx_bus1000(const bench_run *run, bench_sample *out);

/* jzx_spawn.c */
void bench_jzx_fjcreate(const bench_run *run, bench_sample *out);
void bench_jzx_fjcreate_chunked(const bench_run *run, bench_sample *out);
void bench_jzx_idle(const bench_run *run, bench_sample *out);

/* raw_restart.c: free, malloc, a message to the actors that must know. */
void bench_raw_restart(const bench_run *run, bench_sample *out);
void bench_raw_restart_all(const bench_run *run, bench_sample *out);
void bench_raw_restart_rss(const bench_run *run, bench_sample *out);
void bench_raw_tree_stop(const bench_run *run, bench_sample *out);
void bench_raw_watch(const bench_run *run, bench_sample *out);
void bench_raw_spawn_stop(const bench_run *run, bench_sample *out);

/* jzx_restart.c */
void bench_jzx_restart(const bench_run *run, bench_sample *out);
void bench_jzx_restart_all(const bench_run *run, bench_sample *out);
void bench_jzx_restart_rss(const bench_run *run, bench_sample *out);
void bench_jzx_tree_stop(const bench_run *run, bench_sample *out);
void bench_jzx_watch(const bench_run *run, bench_sample *out);
void bench_jzx_spawn_stop(const bench_run *run, bench_sample *out);
/* `stop` makes a tree, stops it and returns the CPU time of the stop. */
void bench_tree_report(const bench_run *run, uint64_t (*stop)(uint64_t actors), bench_sample *out);

/* timers.c: a bare wheel, and ours. */
void bench_raw_timers(const bench_run *run, bench_sample *out);
void bench_jzx_timers(const bench_run *run, bench_sample *out);
void bench_raw_timer_cancel(const bench_run *run, bench_sample *out);
void bench_jzx_timer_cancel(const bench_run *run, bench_sample *out);

/* raw_threads.c: rings with 64-byte slots whose push can refuse; eventfd and epoll for waking. */
void bench_raw_pingpong_2t(const bench_run *run, bench_sample *out);
void bench_raw_counting_2t(const bench_run *run, bench_sample *out);
void bench_raw_counting2p_2t(const bench_run *run, bench_sample *out);
void bench_raw_async(const bench_run *run, bench_sample *out);
void bench_raw_wake(const bench_run *run, bench_sample *out);
void bench_raw_spawn_far(const bench_run *run, bench_sample *out);

/* raw_pool.c: a queue under a mutex, two threads that take from it; a condition for waking. */
void bench_raw_rescue(const bench_run *run, bench_sample *out);
void bench_raw_blocking(const bench_run *run, bench_sample *out);

/* jzx_pool.c */
void bench_jzx_fjcreate_2t(const bench_run *run, bench_sample *out);
void bench_jzx_fjcreate_chunked_2t(const bench_run *run, bench_sample *out);
void bench_jzx_spawn_far(const bench_run *run, bench_sample *out);
void bench_jzx_rescue(const bench_run *run, bench_sample *out);
void bench_jzx_blocking(const bench_run *run, bench_sample *out);

/* jzx_threads.c: plain threads that send to a loop. */
void bench_jzx_sender_2t(const bench_run *run, bench_sample *out);
void bench_jzx_async(const bench_run *run, bench_sample *out);
void bench_jzx_wake(const bench_run *run, bench_sample *out);

/* echo.c: starts a server process and is its client. */
void bench_raw_echo(const bench_run *run, bench_sample *out);
void bench_jzx_echo(const bench_run *run, bench_sample *out);
void bench_jzx_echo_watch(const bench_run *run, bench_sample *out);
/* Is the client of a server that runs already; its CPU time and memory are looked up by its pid. */
void bench_echo_drive(uint16_t port, int server_pid, const bench_run *run, bench_sample *out);
/* echo_servers.c: listen on 127.0.0.1:port (0: any), report the port, serve until killed. */
typedef void (*bench_ready_fn)(void *ctx, uint16_t port);
_Noreturn void bench_echo_epoll_serve(uint16_t port, bench_ready_fn ready, void *ctx);
_Noreturn void bench_echo_conn_serve(uint16_t port, bench_ready_fn ready, void *ctx);
_Noreturn void bench_echo_watch_serve(uint16_t port, bench_ready_fn ready, void *ctx);
/* As servers of their own, for other clients: print READY. */
void bench_serve_raw(uint16_t port);
void bench_serve_conn(uint16_t port);
void bench_serve_watch(uint16_t port);

#endif
