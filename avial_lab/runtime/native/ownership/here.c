/* A run of one rank in the process that asks for it: no other process, and nothing that ends this
 * one. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ownership.h"
#include "state.h"

/* Whether this thread is in `avial_run_here`, and where a failure then goes. */
static _Thread_local bool catches;
static jmp_buf caught;

AVIAL_GLOBAL const char *avial_failed;

/* Leaves `avial_run_here`, where this is one. */
static void leave_here(const char *text)
{
    if (!catches) return;
    catches = false;
    avial_failed = text;
    longjmp(caught, 1);
}

void avial_fail(const char *text, int64_t line, int64_t column)
{
    leave_here(text);
    const int64_t words[] = {(int64_t)(intptr_t)text, ASSERTED, 0, 0, line, column};
    avial_outside(-1, words);
}

_Noreturn void avial_die(const char *text, int64_t line, int64_t column)
{
    leave_here(text);
    fprintf(stderr, "%" PRId64 ":%" PRId64 ": an assertion does not hold: %s\n", line, column, text);
    abort();
}

typedef void (*Entry)(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
                      void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
                      void *, void *, void *, void *);

/* C's calling conventions leave it to the caller to take back arguments, those that nobody reads
 * among them. */
static void enter(void *entry, void *const *given, i64 count)
{
    void *a[HERE_ARRAYS] = {0};
    memcpy(a, given, (size_t)count * sizeof *a);
    Entry call;
    memcpy(&call, &entry, sizeof call);
    call(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13],
         a[14], a[15], a[16], a[17], a[18], a[19], a[20], a[21], a[22], a[23]);
}

/* Whether two of the caller's arrays, one of which is written, share memory. */
static bool shares_memory(const HereCall *c)
{
    for (i64 k = 0; k < c->arrays; k++)
        for (i64 n = 0; n < k; n++) {
            const char *x = c->given[k], *y = c->given[n];
            if (x && y && ((c->uses[k] | c->uses[n]) & HERE_WRITTEN) && x < y + c->bytes[n] &&
                y < x + c->bytes[k])
                return true;
        }
    return false;
}

int64_t avial_run_here(const HereCall *c)
{
    if (c->arrays > HERE_ARRAYS || shares_memory(c)) return HERE_REFUSED;
    avial_setup(1, 0, c->arrays, c->ndims, c->dims, c->itemsizes, c->memory);
    for (i64 k = 0; k < c->arrays; k++) {
        if (c->given[k]) memcpy(c->memory[k], c->given[k], (size_t)c->bytes[k]);
        Array *a = &run.arrays[k];
        avial_input(c->uses[k] & HERE_TEMPORARY ? -1 : 0, k, a->whole);
    }
    if (setjmp(caught)) return HERE_FAILED;
    catches = true;
    enter(c->entry, c->descriptors, c->arrays);
    catches = false;
    avial_finish();
    if (avial_error) return HERE_REFUSED;
    for (i64 k = 0; k < c->arrays; k++)
        if (c->given[k] && c->uses[k] & HERE_WRITTEN)
            memcpy(c->given[k], c->memory[k], (size_t)c->bytes[k]);
    return HERE_DONE;
}
