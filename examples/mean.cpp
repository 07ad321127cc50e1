// Actors in C++: the state is an object, made by init and deleted by deinit, so a restart begins
// with a new one. An exception ends in the behavior, as C code calls it, and makes the actor fail.
// A payload is a C++ object too.
// Build: c++ mean.cpp $(pkg-config --cflags --libs libjzx). Run: ./a.out
#include <jzx/jzx.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <string>

namespace
{

enum : uint32_t { NUMBER = 1, ENOUGH };

class Mean
{
  public:
    ~Mean()
    {
        std::printf("forgets %d numbers\n", count_);
    }

    jzx_behavior_result handle(const jzx_message &msg)
    {
        if (msg.tag == ENOUGH) {
            return JZX_BEHAVIOR_STOP;
        }
        // The runtime deletes the text after this call, also when std::stod throws.
        sum_ += std::stod(*static_cast<const std::string *>(msg.data));
        count_++;
        std::printf("the mean of %d is %g\n", count_, sum_ / count_);
        return JZX_BEHAVIOR_OK;
    }

  private:
    double sum_ = 0;
    int count_ = 0;
};

// The three functions that the runtime calls, for every class with a handle().
template <class Actor> jzx_behavior_result make(jzx_context *ctx, void *) noexcept
try {
    ctx->state = new Actor;
    return JZX_BEHAVIOR_OK;
} catch (...) {
    return JZX_BEHAVIOR_FAIL;
}

template <class Actor> jzx_behavior_result behave(jzx_context *ctx, const jzx_message *msg) noexcept
try {
    return static_cast<Actor *>(ctx->state)->handle(*msg);
} catch (const std::exception &trouble) {
    std::printf("fails: %s\n", trouble.what());
    return JZX_BEHAVIOR_FAIL;
}

template <class Actor> void forget(jzx_context *ctx) noexcept
{
    delete static_cast<Actor *>(ctx->state);
}

jzx_err send_text(jzx_loop *loop, jzx_actor_id to, const char *text)
{
    auto payload = std::make_unique<std::string>(text);
    jzx_send_opts opts = {};
    opts.data = payload.get();
    opts.len = sizeof *payload;
    opts.tag = NUMBER;
    opts.drop = [](void *data) { delete static_cast<std::string *>(data); };
    jzx_err err = jzx_send_with(loop, to, &opts);
    if (err == JZX_OK) {
        (void)payload.release(); // the runtime's from here on
    }
    return err;
}

} // namespace

int main()
{
    jzx_loop *loop = nullptr;
    jzx_actor_id mean = JZX_NOBODY;
    jzx_spawn_opts opts = {};
    opts.name = "mean";
    opts.init = make<Mean>;
    opts.behavior = behave<Mean>;
    opts.deinit = forget<Mean>;
    opts.restart = JZX_RESTART_TRANSIENT;
    bool fine = jzx_loop_create(nullptr, &loop) == JZX_OK &&
                jzx_spawn(loop, &opts, &mean) == JZX_OK && send_text(loop, mean, "4") == JZX_OK &&
                send_text(loop, mean, "6") == JZX_OK && send_text(loop, mean, "many") == JZX_OK &&
                send_text(loop, mean, "10") == JZX_OK &&
                jzx_send_u64(loop, mean, 0, ENOUGH) == JZX_OK && jzx_loop_run(loop) == JZX_OK;
    return jzx_loop_destroy(loop) == JZX_OK && fine ? 0 : 1;
}
