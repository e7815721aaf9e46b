/* A run of one rank in the process that asks for it: no other process, and nothing that ends this
 * one. */
#include <stdlib.h>
#include <string.h>

#include "ownership.h"
#include "state.h"
#include "stopping.h"

typedef void (*Entry)(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
                      void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
                      void *, void *, void *, void *);

/* C's calling conventions leave it to the caller to take back arguments, those that nobody reads
 * among them. */
static void enter(const HereCall *c)
{
    void *a[HERE_ARRAYS] = {0};
    memcpy(a, c->descriptors, (size_t)c->arrays * sizeof *a);
    Entry call;
    memcpy(&call, &c->entry, sizeof call);
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

/* Whether the program works on the caller's array itself, and not on a copy of it. */
static bool is_in_place(const HereCall *c, i64 k)
{
    u64 aligned = (u64)(c->itemsizes[k] < 8 ? c->itemsizes[k] : 8);
    return c->given[k] && (uintptr_t)c->given[k] % aligned == 0;
}

/* Whether a copy of the caller's array is kept: what is written has to be as it was where the run
 * does not come to its end, unless nobody sees it then. */
static bool is_kept(const HereCall *c, i64 k)
{
    return c->given[k] && c->uses[k] & HERE_WRITTEN && !(c->in_place || c->uses[k] & HERE_FRESH);
}

int64_t avial_run_here(const HereCall *c)
{
    if (c->arrays > HERE_ARRAYS || shares_memory(c)) return HERE_REFUSED;
    void *memory[HERE_ARRAYS];
    for (i64 k = 0; k < c->arrays; k++) {
        bool own = !is_in_place(c, k);
        memory[k] = own ? c->memory[k] : c->given[k];
        if (c->given[k] && (own || is_kept(c, k)))
            memcpy(c->memory[k], c->given[k], (size_t)c->bytes[k]);
        void **descriptor = c->descriptors[k];
        descriptor[0] = descriptor[1] = memory[k];
    }
    avial_setup(1, 0, c->arrays, c->ndims, c->dims, c->itemsizes, memory);
    for (i64 k = 0; k < c->arrays; k++)
        avial_input(c->uses[k] & HERE_TEMPORARY ? -1 : 0, k, run.arrays[k].whole);
    listen_to_interrupts(c->bell);
    i64 ended = until_stopped(enter, c);
    listen_no_more();
    if (ended == HERE_DONE) {
        avial_finish();
        if (avial_error) ended = HERE_REFUSED;
    }
    /* Now that no thread is in it: the results of copies, or what was there before. */
    for (i64 k = 0; k < c->arrays; k++) {
        bool own = memory[k] != c->given[k], whole = ended == HERE_DONE;
        if (whole ? own && c->given[k] && c->uses[k] & HERE_WRITTEN : !own && is_kept(c, k))
            memcpy(c->given[k], c->memory[k], (size_t)c->bytes[k]);
    }
    return ended;
}
