/* Goal: no text makes the parser of schedules read where it must not, and whatever it takes has
 * times that go forward, on a minute, and that it agrees with itself about. */
#include "cron.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int fact)
{
    if (!fact) {
        abort();
    }
}

static void follow(const mfi_schedule *schedule, uint64_t after)
{
    for (int i = 0; i < 8; i++) {
        uint64_t next = mfi_schedule_next(schedule, after);
        require(next > after || next == UINT64_MAX);
        if (next == UINT64_MAX) {
            return;
        }
        if (schedule->every_ms == 0) {
            require(next % 60000 == 0);
            require(mfi_schedule_next(schedule, next - 1) == next); /* nothing lies between */
        }
        after = next;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* The first bytes say where to begin; the text is a block of its own, so that the sanitizer
     * sees every read past its end. */
    uint64_t after = 0;
    size_t head = size < sizeof after ? size : sizeof after;
    if (head > 0) {
        memcpy(&after, data, head);
    }
    size_t len = size - head;
    char *text = malloc(len > 0 ? len : 1);
    require(text != NULL);
    if (len > 0) {
        memcpy(text, data + head, len);
    }
    mfi_schedule schedule;
    if (mfi_schedule_parse(jzx_mf_blob(text, len), &schedule) == JZX_OK) {
        follow(&schedule, after);
        follow(&schedule, after % 4102444800000u); /* before 2100 */
    }
    free(text);
    return 0;
}
