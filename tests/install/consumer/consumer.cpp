// A C++ program links against the library and drives one actor.
#include <jzx/jzx.h>

#include <cstdio>

static jzx_behavior_result last_words(jzx_context *ctx, const jzx_message *msg)
{
    std::printf("%s\n", static_cast<const char *>(msg->data));
    *static_cast<bool *>(ctx->state) = true;
    return JZX_BEHAVIOR_STOP;
}

int main()
{
    bool ran = false;
    jzx_loop *loop = nullptr;
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {};
    opts.behavior = last_words;
    opts.state = &ran;
    bool ok = jzx_loop_create(nullptr, &loop) == JZX_OK && jzx_spawn(loop, &opts, &id) == JZX_OK &&
              jzx_send_copy(loop, id, "from C++", sizeof "from C++", 1) == JZX_OK &&
              jzx_loop_run(loop) == JZX_OK;
    return jzx_loop_destroy(loop) == JZX_OK && ok && ran ? 0 : 1;
}
