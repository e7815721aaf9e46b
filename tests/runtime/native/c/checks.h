/* For the tests in C: a check that says where it failed, and numbers that look random. */
#ifndef CHECKS_H
#define CHECKS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                 \
            exit(1);                                                                        \
        }                                                                                   \
    } while (0)

static uint64_t random_state = 1;

/* One of low, …, high - 1 (xorshift64*). */
static int64_t random_in(int64_t low, int64_t high)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return low + (int64_t)((random_state * 0x2545f4914f6cdd1dull >> 33) % (uint64_t)(high - low));
}

/* A box within those dimensions that is not empty. */
static void random_box(int64_t nd, const int64_t *dims, int64_t *box)
{
    for (int64_t d = 0; d < nd; d++) {
        box[d] = random_in(0, dims[d]);
        box[nd + d] = random_in(box[d] + 1, dims[d] + 1);
    }
}

/* Whether the element with that row-major number lies in the box. */
static int lies_in(int64_t nd, const int64_t *dims, const int64_t *box, int64_t element)
{
    for (int64_t d = nd - 1; d >= 0; d--) {
        int64_t at = element % dims[d];
        if (at < box[d] || at >= box[nd + d]) return 0;
        element /= dims[d];
    }
    return 1;
}

#endif
