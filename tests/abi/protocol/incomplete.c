/* The size of the type is not known.
 * gcc: struct crate
 * clang: struct crate */
#include "bank.h"

#define POST_MESSAGES(M, P) M(P, parcel, struct crate, copy)
JZX_PROTOCOL(post, 0x2000, POST_MESSAGES);
