/* The entry points, but for those beside what they enter: footprints.c, tables.c.
 *
 * Every rank runs the same phases and keeps the same directories, so that all agree on every
 * message without asking; rank -1 keeps them alone (a plan: no MPI, no memory).
 *
 *     phase        avial_begin(touches)        avial_range, bodies       avial_end
 *     directories  who reads what it lacks?                              who wrote owns
 *     messages     receive, pack, send ──────► inner range, wait, ends   combine reductions
 *
 * Each entry point that may `fail` sets `run.failed`, where a failure leaves it; none enters
 * another.
 */
#include "ownership.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "combine.h"
#include "events.h"
#include "footprints.h"
#include "memo.h"
#include "messages.h"
#include "mpi_calls.h"
#include "overlap.h"
#include "pieces.h"
#include "pipelined.h"
#include "state.h"
#include "stays.h"
#include "strides.h"
#include "transfers.h"
#include "turns.h"

AVIAL_GLOBAL int64_t avial_comm, avial_byte, avial_status_ignore;
AVIAL_GLOBAL int64_t *avial_journal;
AVIAL_GLOBAL int64_t *avial_counts;
AVIAL_GLOBAL int64_t avial_counts_capacity;
AVIAL_GLOBAL int64_t *avial_events;
AVIAL_GLOBAL int64_t avial_events_capacity, avial_events_count, avial_events_dropped;
AVIAL_GLOBAL int64_t avial_keep_turns;
AVIAL_GLOBAL int64_t avial_trips = 2;
AVIAL_GLOBAL int64_t avial_chunk = 1 << 30;
AVIAL_GLOBAL int64_t avial_staging = 256 << 20;
AVIAL_GLOBAL int64_t avial_piece = 256 << 10;
AVIAL_GLOBAL int64_t avial_error;
AVIAL_GLOBAL int64_t avial_outside_words[6];

/* Of the next run: which rank drives each device. */
static Words devices;

/* Phases --------------------------------------------------------------------------------------- */

/* A plan keeps, for people to look at, what each rank touches the first time it touches
 * anything. */
static void keep_footprints(void)
{
    PhaseRecord *record = &run.phases.rows[phase.number];
    const Footprints *all = &phase.footprints;
    if (!run.plan || record->kept || !all->count || run.ranks > FOOTPRINT_RANKS) return;
    record->kept = true;
    if (++run.kept_phases > FOOTPRINT_PHASES || all->count > FOOTPRINT_BOXES) return;
    for (i64 k = 0; k < all->count; k++) {
        const Footprint *f = &all->rows[k];
        const Array *a = &run.arrays[f->array];
        i64 head[4] = {phase.number, f->rank, f->array, f->use}, box = a->scalar ? 0 : 2 * a->nd;
        Words *kept = &run.kept_footprints;
        RESERVE(*kept, kept->count + 4 + box);
        memcpy(kept->rows + kept->count, head, sizeof head);
        memcpy(kept->rows + kept->count + 4, box_at(f->box), (size_t)box * 8);
        kept->count += 4 + box;
    }
}

/* All ranks, in order and in one part each, where the program said nothing else. */
static void set_default_layout(void)
{
    if (phase.layout_set) return;
    phase.block = phase.grid_columns = 0;
    phase.member_count = run.ranks;
    for (i64 r = 0; r < run.ranks; r++) phase.members[r] = r;
}

static void begin_phase(i64 id, i64 kind)
{
    phase.number = id;
    phase.kind = kind;
    if (avial_journal) *(volatile i64 *)avial_journal = id;
    if (avial_counts && id < avial_counts_capacity) ((volatile i64 *)avial_counts)[1 + id]++;
    while (run.phases.count <= id) *APPEND(run.phases) = (PhaseRecord){0};
    run.phases.rows[id].begun++;
    run.moment++;
    phase.transfers.count = phase.messages.count = phase.copies.count = 0;
    phase.interior_ranges = phase.pending = 0;
    phase.range_open = phase.unsplit = phase.combining = phase.copies_wait = false;
    phase.memo_open = phase.memo_found = NULL;
    for (i64 k = 0; k < run.array_count; k++) run.arrays[k].cells.count = 0;
    set_default_layout();
}

/* The phase's messages, and whether it is divided: from the memo, or derived. */
static void derive_messages(const Body *body)
{
    if (memo_find()) return;
    resolve_conflicts(body);
    keep_footprints();
    derive_transfers();
    group_into_messages();
    memo_store_messages();
}

void avial_outside(int64_t id, const int64_t *words)
{
    if (run.broken || run.plan || avial_error) return; /* a plan does not know what is loaded */
    if (id >= 0) phase.number = id;
    memcpy(avial_outside_words, words, sizeof avial_outside_words);
    note_error(ERROR_OUTSIDE);
}

void avial_layout(int64_t block, int64_t grid, int64_t count, const int64_t *ranks)
{
    if (run.broken) return;
    phase.block = block;
    phase.grid_columns = grid;
    phase.member_count = 0;
    for (i64 k = 0; k < (count > 0 ? count : run.ranks); k++) {
        i64 rank = count > 0 ? ranks[k] : k;
        if (rank >= 0 && rank < run.places && phase.member_count < run.places)
            phase.members[phase.member_count++] = rank;
    }
    phase.layout_set = true;
}

void avial_cost(int64_t n, const int64_t *of_slice)
{
    if (run.broken) return;
    if (setjmp(run.failed)) return;
    RESERVE(phase.weights, n);
    for (i64 k = 0; k < n; k++) phase.weights.rows[k] = max(of_slice[k], 0);
    phase.weights.count = n;
}

/* With devices: this rank's copies that wait for no message, and the host's memory made ready for
 * the messages and the ranges that use it. */
static void start_early_copies(void)
{
    bool reads = false, writes = false;
    i64 started = clock_if_traced(), before = run.started_copies;
    start_copies(false);
    for (i64 k = 0; k < phase.messages.count; k++) {
        reads |= phase.messages.rows[k].source == run.rank;
        writes |= phase.messages.rows[k].dest == run.rank;
    }
    for (i64 k = 0; k < phase.places.count; k++)
        if (phase.places.rows[k] < run.ranks) reads = writes = true;
    if (reads && !avial_host_waits(true)) fail(ERROR_DEVICE);
    if (writes && !avial_host_waits(false)) fail(ERROR_DEVICE);
    if (run.started_copies > before) log_copy(started, -1);
    phase.copies_wait = true;
}

/* Waits for the messages to this rank; what they bring for its devices goes on there. */
static void receive(void)
{
    if (phase.pending) complete_receives(unpack_message, false);
    if (phase.copies_wait) start_copies(true);
    phase.copies_wait = false;
}

int64_t avial_begin(int64_t id, int64_t kind, Touches touches, const int64_t *params,
                    const int64_t *space)
{
    if (run.broken || avial_error) return 0;
    if (setjmp(run.failed)) return 0;
    Body body = {touches, params, space};
    begin_phase(id, kind);
    collect_footprints(&body);
    phase.layout_set = false;
    phase.weights.count = 0;
    derive_messages(&body);
    count_messages();
    keep_turn(&body);
    note_stays();
    if (run.plan) {
        start_copies(false), start_copies(true);
        return 0;
    }
    if (run.places > run.ranks) start_early_copies();
    start_messages(false);
    if (!phase.pending) receive();
    split_interior(&body, max(space[SPACE_STEP], 1));
    return avial_error ? 0 : phase.ranges.count / 4;
}

static void end_range(void)
{
    if (phase.range_open && phase.place < run.ranks) /* a device's is logged when it ran */
        log_event((Event){.kind = EVENT_RUN, .start = phase.range_started_ns, .peer = -1});
    phase.range_open = false;
}

void avial_range(int64_t k, int64_t *range)
{
    memset(range, 0, 32);
    if (run.broken || k < 0 || k >= phase.ranges.count / 4) return;
    if (setjmp(run.failed)) return;
    bool waits = k >= phase.interior_ranges && (phase.pending || phase.copies_wait);
    bool logs = phase.range_open || waits; /* an event then ends just now: the clock was read */
    end_range();
    if (waits) receive();
    memcpy(range, phase.ranges.rows + 4 * k, 32);
    phase.place = phase.places.rows[k];
    phase.range_started_ns = logs ? run.last_clock_ns : clock_if_traced();
    phase.range_open = true;
}

void avial_scratch(int64_t array, void *memory)
{
    if (run.broken || run.plan) return;
    if (setjmp(run.failed)) return;
    run.arrays[array].scratch = memory;
    if (!phase.ranges.count || !memory) return;
    receive();
    i64 started = clock_if_traced();
    initialise_scratch(&run.arrays[array], array);
    log_copy(started, array);
}

/* Who wrote owns. A reduction that is not divided is written like anything else, from its
 * scratch. */
static void update_directories(void)
{
    for (i64 k = 0; k < phase.footprints.count; k++) {
        const Footprint *f = &phase.footprints.rows[k];
        Array *a = &run.arrays[f->array];
        if (f->use == USE_READ || (f->use == USE_REDUCE && phase.combining)) continue;
        if (f->use == USE_REDUCE && phase.ranges.count && a->scratch && !run.plan) {
            i64 started = clock_if_traced();
            copy_box(a, a->memory, a->scratch, box_at(f->box));
            log_copy(started, f->array);
        }
        set_owner(a, box_at(f->box), f->rank);
    }
    if (phase.combining) combine_partials();
    memo_store_directories();
}

static void forget_scratch(void)
{
    for (i64 k = 0; k < run.array_count; k++) run.arrays[k].scratch = NULL;
}

void avial_end(void)
{
    if (run.broken || avial_error) return;
    if (setjmp(run.failed)) return;
    end_range();
    receive();
    if (phase.memo_found) memo_restore_directories();
    else update_directories();
    forget_scratch();
    if (!run.plan && run.places > run.ranks) avial_passed(run.moment);
}

static void wait_for_all(void)
{
    i64 started = clock_if_traced();
    check(MPI_Barrier(avial_comm));
    log_event((Event){.kind = EVENT_BARRIER, .start = started, .peer = -1, .array = -1, .high = -1});
}

void avial_barrier(void)
{
    if (run.broken || avial_error) return;
    if (setjmp(run.failed)) return;
    run.phases.rows[phase.number].barriers++;
    if (keeps_turns() && run.turns.count) run.turns.rows[run.turns.count - 1].barriers++;
    if (!run.plan) wait_for_all();
}

/* Devices -------------------------------------------------------------------------------------- */

static bool is_touched(int64_t array)
{
    for (i64 k = 0; k < phase.footprints.count; k++)
        if (phase.footprints.rows[k].array == array && phase.footprints.rows[k].rank == phase.place)
            return true;
    return false;
}

void *avial_there(int64_t array, void *host)
{
    if (run.broken || avial_error) return host;
    if (setjmp(run.failed)) return host;
    if (!is_touched(array)) return (void *)(intptr_t)NOWHERE;
    void *address = avial_at(phase.place, array, host);
    if (!address) fail(ERROR_DEVICE);
    return address;
}

static void launch(const DeviceKernel *kernel, const void *data, int64_t bytes)
{
    if (run.broken || avial_error) return;
    if (setjmp(run.failed)) return;
    for (i64 k = 0; k < phase.footprints.count; k++) {
        const Footprint *f = &phase.footprints.rows[k];
        if (f->rank != phase.place) continue;
        if (!avial_touch(phase.place, f->array, f->use != USE_READ)) fail(ERROR_DEVICE);
    }
    if (!avial_launch_at(phase.place, kernel, data, bytes, launch_tag())) fail(ERROR_DEVICE);
}

void avial_launch(void (*kernel)(void *), const void *data, int64_t bytes)
{
    launch(&(DeviceKernel){.emulated = kernel}, data, bytes);
}

void avial_launch_kernel(void (*emulated)(void *), const void *data, int64_t bytes,
                         const int64_t *sizes, const char *image, const char *name,
                         const int64_t *offsets, int64_t arguments)
{
    DeviceKernel kernel = {emulated, sizes, image, name, offsets, arguments};
    launch(&kernel, data, bytes);
}

void avial_devices(int64_t count, const int64_t *ranks)
{
    devices.count = 0;
    if (setjmp(run.failed)) return;
    COPY_ROWS(devices, ranks, count);
}

void avial_bring_back(void)
{
    if (run.broken || run.places == run.ranks) return;
    if (avial_error) {
        if (!run.plan) avial_places_end(); /* pinned arrays are the caller's again */
        return;
    }
    if (setjmp(run.failed)) return;
    phase.number = -1;
    phase.transfers.count = phase.messages.count = phase.copies.count = phase.boxes.count = 0;
    phase.footprints.count = 0;
    run.moment++;
    derive_results();
    keep_results();
    note_stays();
    keep_copies();
    start_copies(false);
    if (!run.plan) release_stages();
    if (!run.plan && !avial_places_end()) fail(ERROR_DEVICE);
}

static void set_up_places(i64 ranks, i64 rank)
{
    run.places = ranks + devices.count;
    run.driver = zeroed(run.places, 8);
    for (i64 p = 0; p < run.places; p++)
        run.driver[p] = p < ranks ? p : min(devices.rows[p - ranks], ranks - 1);
    if (run.plan || !devices.count) return;
    if (!avial_places(ranks, rank, devices.count, devices.rows)) fail(ERROR_DEVICE);
    avial_on_launch(avial_events ? log_launched : NULL);
}

static void set_up_array(i64 array, i64 nd, const i64 *dims)
{
    const Array *a = &run.arrays[array];
    if (run.plan || run.places == run.ranks) return;
    if (!avial_place_array(array, nd, dims, a->itemsize, a->memory)) fail(ERROR_DEVICE);
}

/* Control flow --------------------------------------------------------------------------------- */

int64_t avial_live(void) { return !run.plan; }

void avial_unknown(void)
{
    if (run.plan) run.incomplete = true;
}

/* The loop that is called from there. */
static Loop *loop_at(void *site)
{
    for (i64 k = 0; k < run.loops.count; k++)
        if (run.loops.rows[k].site == site) return &run.loops.rows[k];
    Loop *loop = APPEND(run.loops);
    *loop = (Loop){site, 0};
    return loop;
}

int64_t avial_again(int64_t condition)
{
    if (run.broken || avial_error) return 0; /* bodies no longer run: no loop may wait for them */
    if (!run.plan) return condition;
    if (setjmp(run.failed)) return 0;
    run.incomplete = true;
    Loop *loop = loop_at(__builtin_return_address(0));
    loop->turns = loop->turns < avial_trips ? loop->turns + 1 : 0;
    return loop->turns > 0;
}

/* A run ---------------------------------------------------------------------------------------- */

void avial_setup(int64_t ranks, int64_t rank, int64_t arrays, const int64_t *ndims,
                 const int64_t *dims, const int64_t *itemsizes, void **memory)
{
    reset_run();
    avial_error = avial_events_count = avial_events_dropped = 0;
    if (setjmp(run.failed)) return;
    if (ranks < 1 || ranks > INT_MAX) fail(ERROR_NO_MEMORY);
    run.ranks = ranks;
    run.rank = rank;
    run.plan = rank < 0;
    set_up_places(ranks, rank);
    run.set_words = (run.places + 63) / 64;
    phase.members = zeroed(run.places, 8);
    scratch.per_rank = zeroed(2 * run.places, 8);
    RESERVE(scratch.merged, 2 * MAX_DIMS + 1 + run.set_words);
    run.arrays = zeroed(arrays, sizeof(Array));
    run.array_count = arrays;
    for (i64 k = 0, d = 0; k < arrays; d += ndims[k++]) {
        if (ndims[k] > MAX_DIMS) fail(ERROR_TOO_MANY_DIMS);
        init_array(&run.arrays[k], ndims[k], dims + d, itemsizes[k],
                   run.plan || !memory ? NULL : memory[k]);
        set_up_array(k, ndims[k], dims + d);
    }
}

void avial_home(int64_t array, int64_t place)
{
    if (run.broken) return;
    if (setjmp(run.failed)) return;
    Array *a = &run.arrays[array];
    a->home = place;
    if (volume(a->nd, a->whole)) set_owner(a, a->whole, place);
}

void avial_input(int64_t rank, int64_t array, const int64_t *box)
{
    if (run.broken) return;
    if (setjmp(run.failed)) return;
    Array *a = &run.arrays[array];
    i64 part[2 * MAX_DIMS];
    if (rank < 0) a->undefined = true;
    else if (intersect(a->nd, part, box_given(a, box), a->whole))
        add_holder(a, &a->given, part, rank, false);
}

void avial_finish(void)
{
    if (run.broken || run.plan) return;
    if (setjmp(run.failed)) return;
    for (i64 k = 0; k < run.buffers.count; k++) {
        Buffer *b = &run.buffers.rows[k];
        requests_complete(b, true);
        if (avial_error) continue; /* MPI may still write there */
        free(b->data);
        *b = (Buffer){.requests = b->requests, .request_capacity = b->request_capacity};
    }
}
