/* Ownership: which ranks hold the latest version of which box of which array, and what moves for it.
 *
 * Footprints of the phases of a program -> messages, combined reductions, tables of both. Linked into
 * every structured program. Every rank runs the same phases and keeps the same book, so that all agree
 * on every message without asking; rank -1 keeps the book alone (a plan: no MPI, no memory).
 *
 *     phase        avial_begin(touches)        avial_range, bodies       avial_end
 *     book         who reads what it lacks?                              writers own what they wrote
 *     messages     receive, pack, send ──────► inner range, wait, edges  combine reductions
 *
 * A book is a list of pieces that tile an array: a box, the rank that wrote it last (-1: the caller),
 * and the set of ranks that hold this version. Boxes are lo[nd], hi[nd], half-open.
 */
#include "books/run.h"
#include "books/pieces.h"
#include "books/stretches.h"
#include "books/operations.h"
#include "books/parts.h"
#include "books/footprints.h"
#include "books/moves.h"
#include "books/recall.h"
#include "books/messages.h"
#include "books/streams.h"
#include "books/inner.h"
#include "books/combine.h"

/* Phases ----------------------------------------------------------------------------------------- */

/* A plan keeps, for people to look at, what each rank touches the first time it touches anything. */
static void sketch(void)
{
    Phase *phase = &phases.rows[now];
    if (!plan || phase->sketched || !items.count || ranks > SKETCHED_RANKS) return;
    phase->sketched = true;
    if (++nsketched > SKETCHED_PHASES || items.count > SKETCHED_ITEMS) return;
    for (i64 k = 0; k < items.count; k++) {
        const Item *item = &items.rows[k];
        const Array *a = &arrays[item->array];
        i64 head[4] = {now, item->rank, item->array, item->use}, box = a->scalar ? 0 : 2 * a->nd;
        RESERVE(sketches, sketches.count + 4 + box);
        memcpy(sketches.rows + sketches.count, head, sizeof head);
        memcpy(sketches.rows + sketches.count + 4, box_of(item->at), (size_t)box * 8);
        sketches.count += 4 + box;
    }
}

static void open_phase(i64 id, i64 of_kind)
{
    now = id;
    kind = of_kind;
    if (avial_journal) *(volatile i64 *)avial_journal = id;
    if (avial_counts && id < avial_counts_capacity) ((volatile i64 *)avial_counts)[1 + id]++;
    while (phases.count <= id) *APPEND(phases) = (Phase){0};
    phases.rows[id].begun++;
    moves.count = messages.count = interior = pending = 0;
    open_run = alone = combining = false;
    learning = recalled = NULL;
    for (i64 k = 0; k < narrays; k++) arrays[k].cells.count = 0;
    if (layout_set) return;
    block_size = columns = 0;
    nmembers = ranks;
    for (i64 r = 0; r < ranks; r++) members[r] = r;
}

/* For the next phase only: block-cyclic by `block` where that is positive; over a grid of `grid`
 * columns; on `count` of the ranks (0: all). */
void avial_layout(i64 block, i64 grid, i64 count, const i64 *chosen)
{
    if (broken) return;
    block_size = block;
    columns = grid;
    nmembers = 0;
    for (i64 k = 0; k < (count > 0 ? count : ranks); k++) {
        i64 rank = count > 0 ? chosen[k] : k;
        if (rank >= 0 && rank < ranks && nmembers < ranks) members[nmembers++] = rank;
    }
    layout_set = true;
}

/* For the next phase only: the relative work of n equal slices of its first dimension. */
void avial_cost(i64 n, const i64 *of_slice)
{
    static i64 capacity;
    if (broken) return;
    if (setjmp(way_out)) return;
    if (!weights) capacity = 0;
    weights = grown(weights, &capacity, n, 8);
    for (i64 k = 0; k < n; k++) weights[k] = max(of_slice[k], 0);
    nweights = n;
}

i64 avial_begin(i64 id, i64 of_kind, Touches touches, const i64 *params, const i64 *space)
{
    if (broken || avial_error) return 0;
    if (setjmp(way_out)) return 0;
    Body body = {touches, params};
    open_phase(id, of_kind);
    footprints(space, &body);
    layout_set = false;
    nweights = 0;
    if (!recall()) {
        resolve(space, &body);
        sketch();
        needs();
        group();
        remember_messages();
    }
    count_messages();
    if (plan) return 0;
    start(false);
    split(&body, max(space[2], 1));
    return avial_error ? 0 : ranges.count / 4;
}

static void end_run(void)
{
    if (open_run) log_event((Event){.kind = RAN, .start = run_started, .peer = -1});
    open_run = false;
}

void avial_range(i64 k, i64 *range)
{
    memset(range, 0, 32);
    if (broken || k < 0 || k >= ranges.count / 4) return;
    if (setjmp(way_out)) return;
    bool looked = open_run || (k >= interior && pending); /* at the clock, just now */
    end_run();
    if (k >= interior && pending) receive(unpack, false);
    memcpy(range, ranges.rows + 4 * k, 32);
    run_started = looked ? last_look : clock_if_traced();
    open_run = true;
}

void avial_scratch(i64 array, void *memory)
{
    if (broken || plan) return;
    if (setjmp(way_out)) return;
    arrays[array].scratch = memory;
    if (!ranges.count || !memory) return;
    if (pending) receive(unpack, false);
    i64 started = clock_if_traced();
    prepare(&arrays[array], array);
    log_copy(started, array);
}

static void commit(void)
{
    if (recalled) {
        restore_books(recalled->after.rows, recalled->after.count);
        return;
    }
    for (i64 k = 0; k < items.count; k++) {
        const Item *item = &items.rows[k];
        Array *a = &arrays[item->array];
        if (item->use == READ || (item->use == REDUCE && combining)) continue;
        if (item->use == REDUCE && ranges.count && a->scratch && !plan) {
            i64 started = clock_if_traced();
            copy_between(a, a->memory, a->scratch, box_of(item->at));
            log_copy(started, item->array);
        }
        own(a, box_of(item->at), item->rank);
    }
    if (combining) reduce();
    remember_result();
}

void avial_end(void)
{
    if (broken || avial_error) return;
    if (setjmp(way_out)) return;
    end_run();
    if (pending) receive(unpack, false);
    commit();
    for (i64 k = 0; k < narrays; k++) arrays[k].scratch = NULL;
}

/* Every rank waits for every other, after the phase that ended last. */
void avial_barrier(void)
{
    if (broken || avial_error) return;
    phases.rows[now].barriers++;
    if (plan) return;
    i64 started = clock_if_traced();
    check(MPI_Barrier(avial_comm));
    log_event((Event){.kind = MET, .start = started, .peer = -1, .array = -1, .high = -1});
}

/* Control ---------------------------------------------------------------------------------------- */

i64 avial_live(void) { return !plan; }

void avial_unknown(void)
{
    if (plan) incomplete = true;
}

/* In a plan a loop whose end depends on data takes two turns, wherever it is entered. */
i64 avial_again(i64 condition)
{
    if (broken || avial_error) return 0; /* bodies no longer run: no loop may wait for them */
    if (!plan) return condition;
    if (setjmp(way_out)) return 0;
    incomplete = true;
    void *site = __builtin_return_address(0);
    i64 k = 0;
    while (k < loops.count && loops.rows[k].site != site) k++;
    if (k == loops.count) {
        APPEND(loops);
        loops.rows[k].site = site;
        loops.rows[k].times = 0;
    }
    i64 *times = &loops.rows[k].times;
    *times = *times < 2 ? *times + 1 : 0;
    return *times > 0;
}

/* The engine's and the planner's side ------------------------------------------------------------ */

static void close_run(void)
{
    for (i64 k = 0; k < narrays; k++) {
        List *lists[] = {&arrays[k].state, &arrays[k].given, &arrays[k].ever, &arrays[k].cells};
        for (i64 n = 0; n < 4; n++) free(lists[n]->rows);
    }
    for (i64 k = 0; k < pool.count; k++) {
        free(pool.rows[k].data);
        free(pool.rows[k].requests);
    }
    for (i64 k = 0; k < phases.count; k++)
        for (i64 n = 0; n < 4; n++) {
            Memory *m = &phases.rows[k].memories[n];
            FORGET(m->items), FORGET(m->boxes), FORGET(m->before), FORGET(m->after);
            FORGET(m->moves), FORGET(m->messages);
        }
    free(arrays), free(members), free(of_rank), free(weights);
    arrays = NULL, members = NULL, of_rank = NULL, weights = NULL;
    narrays = nweights = sum_hint = collectives_done = avial_events_count = avial_events_dropped = 0;
    FORGET(phases), FORGET(sums), FORGET(pool), FORGET(loops), FORGET(items), FORGET(boxes);
    FORGET(moves), FORGET(messages), FORGET(ranges), FORGET(found), FORGET(other), FORGET(fresh);
    FORGET(counts), FORGET(sketches), FORGET(better), FORGET(streams);
    incomplete = broken = layout_set = combining = open_run = false;
    now = pending = nsketched = 0;
}

static void *zeros(i64 count, i64 size)
{
    void *made = calloc((size_t)max(count, 1), (size_t)size);
    if (!made) fail(NO_MEMORY);
    return made;
}

static void describe(Array *a, i64 nd, const i64 *dims, i64 itemsize, char *memory)
{
    a->nd = max(nd, 1);
    a->scalar = nd == 0;
    a->itemsize = itemsize;
    a->memory = memory;
    a->stride = 2 * a->nd + 1 + words;
    for (i64 d = 0; d < a->nd; d++) a->whole[a->nd + d] = a->scalar ? 1 : dims[d];
    a->unwritten = volume(a->nd, a->whole);
    reset(a, &a->state);
    reset(a, &a->given);
    if (plan) reset(a, &a->ever);
}

/* A new run on `count` ranks as `rank`; -1 makes a plan. dims: those of all arrays, one after another.
 * memory: an address for each array; ignored in a plan. */
void avial_setup(i64 count, i64 rank, i64 number, const i64 *ndims, const i64 *dims,
                 const i64 *itemsizes, void **memory)
{
    close_run();
    avial_error = 0;
    if (setjmp(way_out)) return;
    const i64 *sizes = dims;
    if (count < 1 || count > INT_MAX) fail(NO_MEMORY);
    ranks = count;
    me = rank;
    plan = rank < 0;
    words = (count + 63) / 64;
    members = zeros(count, 8);
    of_rank = zeros(2 * count, 8);
    arrays = zeros(number, sizeof(Array));
    narrays = number;
    widest_row = 2 * MAX_DIMS + 1 + words;
    RESERVE(fresh, widest_row);
    for (i64 k = 0; k < number; sizes += ndims[k++]) {
        if (ndims[k] > MAX_DIMS) fail(TOO_MANY_DIMS);
        describe(&arrays[k], ndims[k], sizes, itemsizes[k], plan || !memory ? NULL : memory[k]);
    }
}

/* That rank holds that box of the caller's array. rank -1: there is no array of the caller's, and what
 * nobody wrote is undefined. */
void avial_input(i64 rank, i64 array, const i64 *box)
{
    static const i64 one[2] = {0, 1};
    if (broken) return;
    if (setjmp(way_out)) return;
    Array *a = &arrays[array];
    i64 part[2 * MAX_DIMS];
    if (rank < 0) a->undefined = true;
    else if (cut(a->nd, part, a->scalar ? one : box, a->whole)) mark(a, &a->given, part, rank, false);
}

void avial_finish(void)
{
    if (broken || plan) return;
    if (setjmp(way_out)) return;
    for (i64 k = 0; k < pool.count; k++) {
        Buffer *b = &pool.rows[k];
        settled(b, true);
        if (avial_error) continue; /* MPI may still write there */
        free(b->data);
        *b = (Buffer){.requests = b->requests, .room = b->room};
    }
}

#include "books/tables.h"
