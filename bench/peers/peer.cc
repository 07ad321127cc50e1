// The workloads on CAF (the C++ Actor Framework, 0.17 as Debian 12 packages it): event-based
// actors on the default scheduler.
//
//   peer WORKLOAD THREADS
//
// prints RESULT workload ops wall_ns cpu_ns peak_rss_kb extra. BENCH_DIVIDE=n divides the work.
#include <caf/all.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <future>
#include <string>
#include <time.h>
#include <unistd.h>
#include <vector>

namespace
{

using caf::actor;
using caf::behavior;
using caf::event_based_actor;
using go_atom = caf::atom_constant<caf::atom("go")>;
using ping_atom = caf::atom_constant<caf::atom("ping")>;
using pong_atom = caf::atom_constant<caf::atom("pong")>;

constexpr int64_t batch = 1000;
constexpr size_t ring_actors = 503;
constexpr size_t big_actors = 10000;

std::promise<void> finished;
std::string workload;
int64_t ops; // set before the first actor exists
int64_t spread_ms = 2000;
int64_t wall_start;
int64_t cpu_start;

int64_t clock_ns(clockid_t which)
{
    timespec ts;
    clock_gettime(which, &ts);
    return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

int64_t status_kb(const std::string &key)
{
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);) {
        if (line.rfind(key, 0) == 0) {
            return std::stoll(line.substr(key.size()));
        }
    }
    return 0;
}

void start()
{
    cpu_start = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    wall_start = clock_ns(CLOCK_MONOTONIC);
}

void finish(std::string extra = "-")
{
    int64_t wall = clock_ns(CLOCK_MONOTONIC) - wall_start;
    int64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_start;
    if (workload.rfind("timers", 0) == 0) {
        extra = "wall_ms=" + std::to_string(wall / 1000000) + ";" + extra;
        wall = cpu;
    }
    std::printf("RESULT %s %lld %lld %lld %lld %s\n", workload.c_str(), static_cast<long long>(ops),
                static_cast<long long>(wall), static_cast<long long>(cpu),
                static_cast<long long>(status_kb("VmHWM:")), extra.c_str());
    std::fflush(stdout);
    finished.set_value();
}

uint32_t next_random(uint32_t &state)
{
    state = static_cast<uint32_t>(uint64_t{state} * 48271 % 2147483647);
    return state;
}

behavior returner(event_based_actor *self, actor to)
{
    return {[=](int64_t value) { self->send(to, value); }};
}

behavior pingpong(event_based_actor *self)
{
    auto other = self->spawn(returner, caf::actor_cast<actor>(self));
    return {[=](go_atom) {
                start();
                self->send(other, ops);
            },
            [=](int64_t value) {
                if (value > 1) {
                    self->send(other, value - 1);
                } else {
                    finish();
                }
            }};
}

struct counter_state {
    int64_t sum = 0;
    int64_t producers = 0;
};

behavior counter(caf::stateful_actor<counter_state> *self, int64_t producers)
{
    self->state.producers = producers;
    return {[=](int64_t value) {
        if (value > 0) {
            self->state.sum += value;
        } else if (--self->state.producers == 0) {
            if (self->state.sum != ops / producers * producers) {
                std::fputs("counting lost messages\n", stderr);
                _exit(1);
            }
            finish();
        }
    }};
}

struct left_state {
    int64_t left = 0;
};

behavior producer(caf::stateful_actor<left_state> *self, actor to, int64_t count)
{
    self->state.left = count;
    return {[=](go_atom go) {
        int64_t now = std::min(batch, self->state.left);
        for (int64_t i = 0; i < now; i++) {
            self->send(to, int64_t{1});
        }
        self->state.left -= now;
        if (self->state.left > 0) {
            self->send(self, go);
        } else {
            self->send(to, int64_t{0});
        }
    }};
}

behavior counting(event_based_actor *self, int64_t producers)
{
    return {[=](go_atom go) {
        start();
        auto to = self->spawn(counter, producers);
        for (int64_t i = 0; i < producers; i++) {
            self->send(self->spawn(producer, to, ops / producers), go);
        }
    }};
}

// Written before the clock starts, only read afterwards.
std::vector<actor> everybody;

behavior ring_member(event_based_actor *self, size_t next)
{
    return {[=](int64_t value) {
        if (value > 0) {
            self->send(everybody[next], value - 1);
        } else {
            finish();
        }
    }};
}

behavior ring(event_based_actor *self)
{
    for (size_t i = 0; i < ring_actors; i++) {
        everybody.push_back(self->spawn(ring_member, (i + 1) % ring_actors));
    }
    return {[=](go_atom) {
        start();
        self->send(everybody[0], ops);
    }};
}

std::atomic<int64_t> tally{0};

behavior short_lived(event_based_actor *self)
{
    return {[=](int64_t) {
        self->quit();
        if (tally.fetch_add(1) + 1 == ops) {
            finish();
        }
    }};
}

behavior fjcreate(event_based_actor *self)
{
    return {[=](go_atom) {
        start();
        for (int64_t i = 0; i < ops; i++) {
            self->send(self->spawn(short_lived), i);
        }
    }};
}

struct member_state {
    uint32_t random = 0;
    int64_t left = 0;
};

behavior big_member(caf::stateful_actor<member_state> *self, uint32_t seed, actor sink)
{
    self->state.random = seed;
    self->state.left = ops / static_cast<int64_t>(big_actors);
    return {[=](ping_atom, int64_t value) {
                self->send(caf::actor_cast<actor>(self->current_sender()), pong_atom::value, value);
            },
            [=](pong_atom, int64_t) {
                auto &state = self->state;
                if (state.left == 0) {
                    self->send(sink, int64_t{1});
                    return;
                }
                state.left--;
                self->send(everybody[next_random(state.random) % big_actors], ping_atom::value,
                           state.left);
            }};
}

behavior big(caf::stateful_actor<left_state> *self)
{
    self->state.left = big_actors;
    for (uint32_t i = 0; i < big_actors; i++) {
        everybody.push_back(self->spawn(big_member, i + 1, caf::actor_cast<actor>(self)));
    }
    return {[=](go_atom) {
                start();
                for (auto &each : everybody) {
                    self->send(each, pong_atom::value, int64_t{0});
                }
            },
            [=](int64_t) {
                if (--self->state.left == 0) {
                    finish();
                }
            }};
}

int64_t before_kb;

// CAF runs this when the actor is first scheduled, which is when it takes its memory.
behavior idler(event_based_actor *)
{
    if (tally.fetch_add(1) + 1 == ops) {
        char extra[64];
        double bytes = static_cast<double>(status_kb("VmRSS:") - before_kb) * 1024 / double(ops);
        std::snprintf(extra, sizeof extra, "bytes_per_actor=%.1f", bytes);
        finish(extra);
    }
    return {[](int64_t) {}};
}

behavior idle(event_based_actor *self)
{
    return {[=](go_atom) {
        everybody.resize(static_cast<size_t>(ops));
        before_kb = status_kb("VmRSS:");
        start();
        for (auto &each : everybody) {
            each = self->spawn(idler);
        }
    }};
}

behavior timer_sink(event_based_actor *)
{
    auto late = std::make_shared<std::vector<int64_t>>();
    late->reserve(static_cast<size_t>(ops));
    return {[=](int64_t due) {
        late->push_back(clock_ns(CLOCK_MONOTONIC) - due);
        if (late->size() == static_cast<size_t>(ops)) {
            std::sort(late->begin(), late->end());
            char extra[64];
            std::snprintf(extra, sizeof extra, "p50_us=%.1f;p99_us=%.1f",
                          double((*late)[late->size() / 2]) / 1e3,
                          double((*late)[late->size() * 99 / 100]) / 1e3);
            finish(extra);
        }
    }};
}

behavior timers(caf::stateful_actor<member_state> *self)
{
    self->state = {42, ops};
    auto sink = self->spawn(timer_sink);
    return {[=](go_atom go) {
        auto &state = self->state;
        if (state.left == ops) {
            start();
        }
        for (int64_t i = 0; i < batch && state.left > 0; i++, state.left--) {
            int64_t delay_ms = next_random(state.random) % spread_ms;
            self->delayed_send(sink, std::chrono::milliseconds(delay_ms),
                               clock_ns(CLOCK_MONOTONIC) + delay_ms * 1000000);
        }
        if (state.left > 0) {
            self->send(self, go);
        }
    }};
}

struct entry {
    const char *name;
    int64_t amount;
    actor (*spawn)(caf::actor_system &system);
};

const entry entries[] = {
    {"pingpong", 5000000, [](caf::actor_system &system) { return system.spawn(pingpong); }},
    {"counting", 10000000,
     [](caf::actor_system &system) { return system.spawn(counting, int64_t{1}); }},
    {"counting2p", 10000000,
     [](caf::actor_system &system) { return system.spawn(counting, int64_t{2}); }},
    {"ring", 10000000, [](caf::actor_system &system) { return system.spawn(ring); }},
    {"fjcreate", 1000000, [](caf::actor_system &system) { return system.spawn(fjcreate); }},
    {"big", 10000000, [](caf::actor_system &system) -> actor { return system.spawn(big); }},
    {"idle", 1000000, [](caf::actor_system &system) { return system.spawn(idle); }},
    {"timers", 1000000, [](caf::actor_system &system) -> actor { return system.spawn(timers); }},
    {"timers100k", 100000, [](caf::actor_system &system) -> actor { return system.spawn(timers); }},
};

const entry &find_entry()
{
    for (const entry &each : entries) {
        if (workload == each.name) {
            return each;
        }
    }
    std::fprintf(stderr, "peer: no such workload: %s\n", workload.c_str());
    _exit(2);
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 3) {
        std::fputs("usage: peer WORKLOAD THREADS\n", stderr);
        return 2;
    }
    workload = argv[1];
    const entry &chosen = find_entry();
    const char *divide = std::getenv("BENCH_DIVIDE");
    int divisor = divide != nullptr ? std::max(1, std::atoi(divide)) : 1;
    ops = chosen.amount / divisor;
    spread_ms /= divisor;
    caf::actor_system_config config;
    config.set("scheduler.max-threads", std::atoi(argv[2]));
    caf::actor_system system{config};
    actor root = chosen.spawn(system);
    caf::scoped_actor main_actor{system};
    main_actor->send(root, go_atom::value);
    finished.get_future().wait();
    _exit(0); // taking it all down is not part of the measurement
}
