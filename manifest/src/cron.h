/* Schedules: "minute hour day month weekday", "@hourly", "@every 90s". Pure; times in UTC ms. */
#ifndef MFI_CRON_H
#define MFI_CRON_H

#include <jzx/manifest_record.h>

typedef struct mfi_schedule {
    uint64_t minutes; /* bit per value; lists, ranges, steps and names are resolved */
    uint32_t hours;
    uint32_t days; /* 1 to 31 */
    uint16_t months;
    uint8_t weekdays; /* bit 0: Sunday */
    uint8_t any_day;  /* the day field was "*" */
    uint8_t any_weekday;
    uint64_t every_ms; /* not 0: none of the above counts */
} mfi_schedule;

/* BAD_SPEC. */
jzx_err mfi_schedule_parse(jzx_mf_span text, mfi_schedule *out);
/* The first time after `after_ms`; UINT64_MAX: never (30 February). */
uint64_t mfi_schedule_next(const mfi_schedule *schedule, uint64_t after_ms);

#endif
