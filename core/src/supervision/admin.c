/* Administration by message: a request is copied into one block that travels as the data of an ask,
 * the supervisor does what the request says with the public calls, and the answer is one block that
 * travels back. Both blocks release themselves wherever they end. */
#include <jzx/admin.h>
#include <jzx/system.h>

#include "base/alloc.h"
#include "messaging/ask.h"
#include "sched/entry.h"
#include "sched/sender.h"
#include "supervision/admin.h"

#include <stddef.h>
#include <string.h>

/* --- requests --- */

typedef struct request_block {
    jzx_allocator alloc;
    jzx_admin_request it; /* its pointers lead to what follows, or are not used */
    jzi_child_plan *plan; /* START_CHILD; owned */
    jzx_supervisor_spec rules;
    char child_id[JZX_CHILD_ID_MAX + 1];
} request_block;

static void drop_request(void *data)
{
    request_block *block = data;
    jzx_allocator alloc = block->alloc;
    if (block->plan != NULL) {
        jzi_child_plan_release(&alloc, block->plan);
    }
    if (block->it.arg != NULL && block->it.drop_arg != NULL) {
        block->it.drop_arg(block->it.arg);
    }
    jzi_free(&alloc, block, sizeof *block);
}

/* The request was not sent: what it would have taken over stays the caller's. */
static void withdraw(request_block *block)
{
    if (block->plan != NULL) {
        jzi_child_plan_disown(block->plan);
    }
    block->it.arg = NULL;
    drop_request(block);
}

/* Whether the fields that the request needs are there. */
static bool is_complete(const jzx_admin_request *request)
{
    switch (request->what) {
    case JZX_ADMIN_START_CHILD:
        return request->spec != NULL;
    case JZX_ADMIN_TERMINATE_CHILD:
    case JZX_ADMIN_RESTART_CHILD:
    case JZX_ADMIN_DELETE_CHILD:
    case JZX_ADMIN_CHILD:
        return request->child_id != NULL;
    case JZX_ADMIN_TERMINATE:
    case JZX_ADMIN_RESTART:
    case JZX_ADMIN_PLAN:
        return request->child != JZX_NOBODY;
    case JZX_ADMIN_RECONFIGURE:
        return request->rules != NULL;
    case JZX_ADMIN_START_DYNAMIC:
    case JZX_ADMIN_CHILDREN:
    case JZX_ADMIN_COUNT:
        return true;
    default:
        return false;
    }
}

static jzx_err copy_parts(request_block *block, const jzx_admin_sizes *sizes)
{
    jzx_admin_request *it = &block->it;
    if (it->child_id != NULL) {
        if (memchr(it->child_id, '\0', sizeof block->child_id) == NULL) {
            return JZX_ERR_TOO_BIG;
        }
        memcpy(block->child_id, it->child_id, strlen(it->child_id));
        it->child_id = block->child_id;
    }
    if (it->what == JZX_ADMIN_RECONFIGURE) {
        jzx_err err =
            jzi_struct_adopt(&block->rules, sizeof block->rules, it->rules, sizes->specs.spec);
        if (err != JZX_OK) {
            return err;
        }
    }
    it->rules = &block->rules;
    return it->what != JZX_ADMIN_START_CHILD
               ? JZX_OK
               : jzi_child_plan_make(&block->alloc, it->spec, &sizes->specs, NULL, NULL, 0,
                                     &block->plan);
}

/* Checked and copied. On an error nothing was transferred. */
static jzx_err make_request(const jzx_allocator *alloc, const jzx_admin_request *given,
                            const jzx_admin_sizes *sizes, request_block **out_block)
{
    jzx_admin_request known;
    jzx_err err = jzi_struct_adopt(&known, sizeof known, given, sizes->request);
    if (err == JZX_OK && known.out_taken != NULL) {
        *known.out_taken = 0;
    }
    if (err != JZX_OK || !is_complete(&known)) {
        return err != JZX_OK ? err : JZX_ERR_INVALID_ARG;
    }
    request_block *block = jzi_alloc_zeroed(alloc, sizeof *block);
    if (block == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    block->alloc = *alloc;
    block->it = known;
    err = copy_parts(block, sizes);
    if (err != JZX_OK) {
        withdraw(block);
        return err;
    }
    *out_block = block;
    return JZX_OK;
}

static jzx_ask_opts ask_of(request_block *block)
{
    return (jzx_ask_opts){.data = block,
                          .len = sizeof *block,
                          .drop = drop_request,
                          .tag = JZX_TAG_ADMIN,
                          .timeout_ms = block->it.timeout_ms,
                          .on_reply = block->it.on_reply,
                          .arg = block->it.reply_arg};
}

/* --- answers --- */

typedef struct answer_block {
    jzx_admin_answer it; /* first */
    jzx_allocator alloc;
    size_t bytes;
    _Alignas(16) unsigned char more[]; /* infos or steps, then names */
} answer_block;

static void drop_answer(void *data)
{
    answer_block *block = data;
    jzx_allocator alloc = block->alloc;
    jzi_free(&alloc, block, block->bytes);
}

void jzx_admin_answer_free(jzx_admin_answer *answer)
{
    if (answer != NULL) {
        drop_answer(answer);
    }
}

static answer_block *make_answer(const jzx_context *ctx, const request_block *request, size_t more)
{
    size_t bytes = sizeof(answer_block) + more;
    answer_block *block = jzi_alloc_zeroed(&request->alloc, bytes);
    if (block != NULL) {
        block->alloc = request->alloc;
        block->bytes = bytes;
        block->it.what = request->it.what;
        block->it.supervisor = ctx->self;
        block->it.child_size = sizeof(jzx_child_info);
    }
    return block;
}

/* Copies a name behind the entries. */
static const char *keep_name(char **at, const char *name)
{
    char *here = *at;
    if (name == NULL) {
        return NULL;
    }
    size_t len = strlen(name); /* a child's id: JZX_CHILD_ID_MAX at most */
    memcpy(here, name, len);
    *at = here + len + 1;
    return here;
}

/* The next two stay inside for as long as they look: in a pool other workers change the children
 * between two calls, and a deleted child takes its name along. */
static answer_block *answer_children(jzx_context *ctx, const request_block *request)
{
    JZI_ENTER(ctx->loop, "jzx_supervisor_children");
    size_t count = jzx_supervisor_children(ctx->loop, ctx->self, NULL, 0);
    bool one = request->it.what == JZX_ADMIN_CHILD;
    count = one ? 1 : count;
    answer_block *block =
        make_answer(ctx, request, count * (sizeof(jzx_child_info) + JZX_CHILD_ID_MAX + 1));
    if (block == NULL) {
        return NULL;
    }
    jzx_child_info *infos = (jzx_child_info *)(void *)block->more;
    if (one) {
        block->it.err = jzx_supervisor_child(ctx->loop, ctx->self, request->it.child_id, &infos[0]);
        count = block->it.err == JZX_OK ? 1 : 0;
    } else {
        (void)jzx_supervisor_children(ctx->loop, ctx->self, infos, count);
    }
    char *names = (char *)(infos + (one ? 1 : count));
    for (size_t i = 0; i < count; i++) {
        infos[i].id = keep_name(&names, infos[i].id);
    }
    block->it.children = infos;
    block->it.count = (uint32_t)count;
    return block;
}

static answer_block *answer_plan(jzx_context *ctx, const request_block *request)
{
    JZI_ENTER(ctx->loop, "jzx_supervisor_plan");
    size_t count = 0;
    jzx_err err = jzx_supervisor_plan(ctx->loop, ctx->self, request->it.child, NULL, 0, &count);
    answer_block *block =
        make_answer(ctx, request, count * (sizeof(jzx_plan_step) + JZX_CHILD_ID_MAX + 1));
    if (block == NULL) {
        return NULL;
    }
    block->it.err = err;
    jzx_plan_step *steps = (jzx_plan_step *)(void *)block->more;
    if (err == JZX_OK) {
        block->it.err =
            jzx_supervisor_plan(ctx->loop, ctx->self, request->it.child, steps, count, &count);
        char *names = (char *)(steps + count);
        for (size_t i = 0; i < count; i++) {
            steps[i].child_id = keep_name(&names, steps[i].child_id);
        }
        block->it.steps = steps;
        block->it.count = (uint32_t)count;
    }
    return block;
}

/* What changes something. */
static jzx_err change(jzx_context *ctx, request_block *request, jzx_actor_id *out_child)
{
    jzx_loop *loop = ctx->loop;
    jzx_actor_id self = ctx->self;
    jzx_admin_request *it = &request->it;
    jzx_err err = JZX_ERR_INVALID_ARG;
    switch (it->what) {
    case JZX_ADMIN_START_CHILD:
        err = jzi_supervisor_start_plan(loop, self, request->plan, out_child);
        request->plan = err == JZX_OK ? NULL : request->plan;
        return err;
    case JZX_ADMIN_START_DYNAMIC:
        err = jzx_supervisor_start_dynamic(loop, self, it->arg, out_child);
        it->arg = err == JZX_OK ? NULL : it->arg;
        return err;
    case JZX_ADMIN_TERMINATE_CHILD:
        return jzx_supervisor_terminate_child(loop, self, it->child_id);
    case JZX_ADMIN_TERMINATE:
        return jzx_supervisor_terminate(loop, self, it->child);
    case JZX_ADMIN_RESTART_CHILD:
        return jzx_supervisor_restart_child(loop, self, it->child_id, out_child);
    case JZX_ADMIN_DELETE_CHILD:
        return jzx_supervisor_delete_child(loop, self, it->child_id);
    case JZX_ADMIN_RECONFIGURE:
        return jzx_supervisor_reconfigure(loop, self, it->rules);
    case JZX_ADMIN_RESTART:
        return jzi_supervisor_restart_now(loop, self, it->child);
    default:
        return err;
    }
}

/* The block for the answer comes first: without it nothing is done, and the asker is told
 * FORGOTTEN. */
static answer_block *answer_change(jzx_context *ctx, request_block *request)
{
    answer_block *block = make_answer(ctx, request, 0);
    if (block == NULL) {
        return NULL;
    }
    if (request->it.what == JZX_ADMIN_COUNT) {
        block->it.err = jzx_supervisor_count(ctx->loop, ctx->self, &block->it.counts);
    } else {
        block->it.err = change(ctx, request, &block->it.child);
    }
    return block;
}

jzx_behavior_result jzi_admin_behavior(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->tag != JZX_TAG_ADMIN || msg->drop != drop_request || !jzx_is_ask(ctx)) {
        return jzi_children_behavior(ctx, msg);
    }
    request_block *request = msg->data;
    answer_block *block = NULL;
    switch (request->it.what) {
    case JZX_ADMIN_CHILDREN:
    case JZX_ADMIN_CHILD:
        block = answer_children(ctx, request);
        break;
    case JZX_ADMIN_PLAN:
        block = answer_plan(ctx, request);
        break;
    default:
        block = answer_change(ctx, request);
        break;
    }
    if (block == NULL) {
        return JZX_BEHAVIOR_OK;
    }
    jzx_send_opts reply = {
        .data = block, .len = sizeof(jzx_admin_answer), .drop = drop_answer, .tag = JZX_TAG_ADMIN};
    if (jzx_reply_with(ctx, JZX_REQUEST_IN_HAND, &reply) != JZX_OK) {
        drop_answer(block); /* the asker is gone */
    }
    return JZX_BEHAVIOR_OK;
}

/* --- asking --- */

jzx_err jzx_admin_ask_sized(jzx_loop *loop, jzx_actor_id supervisor,
                            const jzx_admin_request *request, jzx_admin_sizes sizes,
                            jzx_ask_ref *out_ref)
{
    if (loop == NULL || request == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    request_block *block = NULL;
    const jzx_allocator alloc = jzx_loop_allocator(loop);
    jzx_err err = make_request(&alloc, request, &sizes, &block);
    if (err != JZX_OK) {
        return err;
    }
    jzx_ask_opts opts = ask_of(block);
    int *out_taken = block->it.out_taken; /* from the ask on the block is not ours */
    err = jzx_ask(loop, supervisor, &opts, out_ref);
    if (err != JZX_OK) {
        withdraw(block);
    } else if (out_taken != NULL) {
        *out_taken = 1;
    }
    return err;
}

const jzx_admin_answer *jzx_admin_answer_of(const jzx_message *msg)
{
    return msg != NULL && msg->kind == JZX_KIND_REPLY && msg->tag == JZX_TAG_ADMIN &&
                   msg->drop == drop_answer
               ? msg->data
               : NULL;
}

jzx_err jzx_admin_wait_sized(jzx_sender *sender, jzx_actor_id supervisor,
                             const jzx_admin_request *request, jzx_admin_sizes sizes,
                             jzx_admin_answer **out_answer)
{
    if (out_answer != NULL) {
        *out_answer = NULL;
    }
    if (sender == NULL || request == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    request_block *block = NULL;
    jzx_err err = make_request(&jzi_sender_inbox(sender)->alloc, request, &sizes, &block);
    if (err != JZX_OK) {
        return err;
    }
    jzx_ask_opts opts = ask_of(block);
    int *out_taken = block->it.out_taken;
    jzx_message msg = {0};
    bool sent = false;
    err = jzi_ask_wait(sender, supervisor, &opts, &msg, &sent);
    if (sent && out_taken != NULL) {
        *out_taken = 1;
    }
    if (err != JZX_OK) {
        if (!sent) {
            withdraw(block);
        }
        return err;
    }
    const jzx_admin_answer *answer = msg.drop == drop_answer ? msg.data : NULL;
    if (answer == NULL) { /* an actor that is no supervisor answered */
        jzx_reply_release(sender, &msg);
        return JZX_ERR_WRONG_SUPERVISOR;
    }
    err = (jzx_err)answer->err;
    if (out_answer != NULL) {
        *out_answer = msg.data;
    } else {
        jzx_reply_release(sender, &msg);
    }
    return err;
}
