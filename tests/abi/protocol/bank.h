/* The protocol that the snippets beside this file misuse, one way each. */
#ifndef TEST_BANK_H
#define TEST_BANK_H

#include <jzx/protocol.h>

struct deposit {
    uint64_t cents;
    uint32_t account;
};
struct withdraw {
    uint64_t cents;
};
struct cheque {
    char text[40];
};
struct money {
    uint32_t cents;
};

static inline void cheque_free(struct cheque *cheque)
{
    free(cheque);
}

#define BANK_MESSAGES(M, P)                                                                        \
    M(P, deposit, struct deposit, copy)                                                            \
    M(P, cheque, struct cheque, owned(cheque_free))                                                \
    M(P, limit, struct money, value)                                                               \
    M(P, note, char, array)                                                                        \
    M(P, audit, void, none)                                                                        \
    M(P, balance, uint32_t, value, struct money, value)                                            \
    M(P, history, uint32_t, value, struct deposit, copy)                                           \
    M(P, last_cheque, void, none, struct cheque, owned(free))                                      \
    M(P, close, void, none, void, none)
JZX_PROTOCOL(bank, 0x1000, BANK_MESSAGES);

#endif
