/* Numbers and bars of `jzx top`, short enough for a cell. Pure. */
#ifndef JZX_CMD_TOP_TEXT_H
#define JZX_CMD_TOP_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/* Numbers for people. None takes more than the columns given here. */
typedef struct top_word {
    char text[24];
} top_word;
top_word top_word_count(uint64_t value);             /* "99999", "1.2M": 5 */
top_word top_word_rate(double per_second);           /* "9.5", "950", "-" if negative: 5 */
top_word top_word_percent(double share);             /* of 1: "12.0", "100": 5 */
top_word top_word_bytes(uint64_t bytes);             /* "704", "5.0M": 5 */
top_word top_word_ms(uint64_t ms);                   /* "12ms", "3.2s", "5m12s", "3h04m": 6 */
top_word top_word_us(uint64_t us);                   /* "35us", then as above: 6 */
top_word top_word_box(uint64_t depth, uint64_t cap); /* "12/1024", "12": 11 */

/* A bar of `columns` of which `share` (0 to 1) is filled, in eighths where there is UTF-8. `out`
 * has 3 bytes per column and one more. */
void top_text_bar(char *out, double share, int columns, bool utf8);
/* One column for a share: a block of that height, or a digit. */
const char *top_text_level(double share, bool utf8);

#endif
