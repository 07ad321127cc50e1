#include "base/backoff.h"

#include "base/assert.h"

#include <math.h>
#include <stddef.h>

const char *jzi_backoff_wrong(double factor, double jitter)
{
    if (!isfinite(factor)) {
        return "backoff_factor is no finite number";
    }
    if (factor != 0 && factor < 1) {
        return "backoff_factor is below 1";
    }
    if (!isfinite(jitter)) {
        return "backoff_jitter is no finite number";
    }
    if (jitter < 0 || jitter > 1) {
        return "backoff_jitter is not between 0 and 1";
    }
    return NULL;
}

/* By squaring, so that four billion attempts take 32 steps; infinity is a fine result. */
static double power(double base, uint32_t exponent)
{
    double result = 1;
    for (; exponent > 0; exponent /= 2) {
        if (exponent % 2 == 1) {
            result *= base;
        }
        base *= base;
    }
    return result;
}

uint64_t jzi_backoff_delay(const jzi_backoff *backoff, uint32_t attempt, uint32_t random)
{
    jzi_assert(attempt > 0);
    if (backoff->min_ns == 0) {
        return 0;
    }
    double max = (double)backoff->max_ns;
    double delay = (double)backoff->min_ns * power(backoff->factor, attempt - 1);
    if (!(delay < max)) {
        delay = max;
    }
    /* The range is cut at the maximum before a value is drawn from it: actors that all wait the
     * longest still do not come back at the same moment. */
    double low = delay - delay * backoff->jitter;
    double high = delay + delay * backoff->jitter;
    if (high > max) {
        high = max;
    }
    double drawn = low + (high - low) * ((double)random / (double)UINT32_MAX);
    /* Compared before it is cut: the greatest maximum is no uint64_t once it is a double. */
    return drawn < max ? (uint64_t)drawn : backoff->max_ns;
}
