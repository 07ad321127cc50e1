/* Two protocols of one actor share a tag.
 * gcc: bank and post: both have the same tag
 * clang: bank and post: both have the same tag */
#include "bank.h"

#define POST_MESSAGES(M, P) M(P, parcel, uint32_t, value) M(P, letter, uint32_t, value)
JZX_PROTOCOL(post, 0x0FFF, POST_MESSAGES);
JZX_PROTOCOLS_DISJOINT(bank, post);
