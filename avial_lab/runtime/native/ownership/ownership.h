/* What compiled programs call of the ownership runtime, and what the engine and the planner do.
 *
 * Every rank of a program runs the same phases in the same order and declares to the runtime what each
 * rank touches in each of them. From that every rank derives the same messages, without asking:
 *
 *     int64_t range[4], n = avial_begin(id, PHASE_REPLICATE, touches, params, space);
 *     for (int64_t k = 0; k < n; k++) {
 *         avial_range(k, range);        lower and upper bound of either split dimension
 *         … the phase's iterations from range[0] to range[1] …
 *     }
 *     avial_end();
 *
 * Arrays are numbered from 0 as in `avial_setup`. A box has `2 * nd` words: the first element of
 * each dimension, then one past the last of each; of an array without dimensions it is not read.
 * What sticks out of the array is cut off. One run at a time, and one thread that calls.
 *
 * Errors: the first one is kept in `avial_error`. From then on phases have no iterations.
 */
#ifndef AVIAL_OWNERSHIP_H
#define AVIAL_OWNERSHIP_H

#include <stdint.h>

#include "constants.h"

/* Weak, because the program's own module may define what it uses of these, too. */
#define AVIAL_GLOBAL __attribute__((weak))

/* Set by the engine before a run --------------------------------------------------------------- */

/* MPI's handles of the communicator and of MPI_BYTE, and its MPI_STATUS_IGNORE; 64 bits wide,
 * whatever the MPI at hand makes of them. */
extern int64_t avial_comm AVIAL_GLOBAL, avial_byte AVIAL_GLOBAL, avial_status_ignore AVIAL_GLOBAL;

/* The number of the phase that runs is stored there, where it is not NULL. */
extern int64_t *avial_journal AVIAL_GLOBAL;

/* Where it is not NULL: the bytes this rank sent; then how often each phase was begun, of the first
 * `avial_counts_capacity` phases. */
extern int64_t *avial_counts AVIAL_GLOBAL;
extern int64_t avial_counts_capacity AVIAL_GLOBAL;

/* The trace, where it is not NULL: room for `avial_events_capacity` events. */
extern int64_t *avial_events AVIAL_GLOBAL;
extern int64_t avial_events_capacity AVIAL_GLOBAL;

extern int64_t avial_keep_turns AVIAL_GLOBAL; /* whether a plan keeps TABLE_TURNS; else 0 */
extern int64_t avial_trips AVIAL_GLOBAL; /* of a plan's loop whose end depends on data */
extern int64_t avial_chunk AVIAL_GLOBAL;   /* most bytes of one MPI call */
extern int64_t avial_staging AVIAL_GLOBAL; /* bytes under way at which a send waits for others */
extern int64_t avial_piece AVIAL_GLOBAL;   /* bytes of a piece of a pipelined message */

/* Read by the engine after a run --------------------------------------------------------------- */

/* 0, or the first failure: an `ErrorCode` or a code of MPI's, and the phase's number << 32. */
extern int64_t avial_error AVIAL_GLOBAL;

/* Of ERROR_OUTSIDE: the access as text (its address), dimension, index, size, line and column. */
extern int64_t avial_outside_words[6] AVIAL_GLOBAL;

/* Events in the trace, and those there was no room for (they are in TABLE_TOTALS).
 *
 * Times of an `Event` are nanoseconds of CLOCK_MONOTONIC. phase, turn: the phase, and its turn,
 * from 1. kind: a RunEvent, + EVENT_PARTIAL where reductions are combined. mid: where in a
 * send its packing ends, or in a receive its unpacking begins; 0 where nothing was copied. peer:
 * the other rank, -1 for all. array, count: the first array that is moved, and the boxes in the
 * message. low, high: the first box in dimension 0; (0, -1) where it has none. number: of the
 * collectives, which one it is. */
extern int64_t avial_events_count AVIAL_GLOBAL, avial_events_dropped AVIAL_GLOBAL;

/* What a failed assertion said in `avial_run_here`. */
extern const char *avial_failed AVIAL_GLOBAL;

/* Called by programs: a phase ------------------------------------------------------------------ */

/* Reports what the iterations of `range` (lo0, hi0, lo1, hi1) touch, by the three functions below.
 * Called for the parts of other ranks, too: it reads nothing but its arguments. */
typedef void (*Touches)(const int64_t *params, const int64_t *range);

void avial_read(int64_t array, const int64_t *box);

/* exact: every element of the box is written; else old values are needed. */
void avial_write(int64_t array, const int64_t *box, int64_t exact);

/* operation: `Reduction` << ELEMENT_BITS | `ElementCode`, or a payload's (constants.py). */
void avial_reduce(int64_t array, const int64_t *box, int64_t operation);

/* In a range: where the element of the array that is at `host` on the host lies on the place that
 * runs it. */
void *avial_there(int64_t array, void *host);

/* In a range: launches the function on the place that runs it, with `bytes` of arguments that it is
 * handed a copy of. */
void avial_launch(void (*kernel)(void *), const void *data, int64_t bytes);

/* The same of a kernel over blocks of threads: `DeviceKernel` in `devices/places.h`. */
void avial_launch_kernel(void (*emulated)(void *), const void *data, int64_t bytes,
                         const int64_t *sizes, const char *image, const char *name,
                         const int64_t *offsets, int64_t arguments);

/* An access leaves its array, in phase `id` (-1: the current one), which is not run, nor is any
 * after it. words: those of `avial_outside_words`. */
void avial_outside(int64_t id, const int64_t *words);

/* For the next phase only. block: deal its slots out in blocks of so many, in turn; 0 for one part
 * a rank. grid: columns of the grid of ranks that divides the second dimension, too; 0 for one.
 * ranks: the `count` places that take part; all hosts where count is 0. */
void avial_layout(int64_t block, int64_t grid, int64_t count, const int64_t *ranks);

/* For the next phase only: the relative work of `n` equal slices of its first dimension. */
void avial_cost(int64_t n, const int64_t *of_slice);

/* Begins phase `id`, of a PhaseKind: moves to this rank what it lacks. space: SPACE_WORDS for each
 * of two dimensions. Returns how many ranges this rank has; 0 in a plan. */
int64_t avial_begin(int64_t id, int64_t kind, Touches touches, const int64_t *params,
                    const int64_t *space);

/* The k-th range, in order, to run now. The inner range comes first where messages are under way,
 * so that they travel meanwhile; the next one waits for them. */
void avial_range(int64_t k, int64_t *range);

/* Memory, as large as the array, in which this rank accumulates; it is given its first values here.
 * Before the first range; the memory is the caller's, and is not read after `avial_end`. */
void avial_scratch(int64_t array, void *memory);

/* Ends the phase: partial results are combined, and who wrote owns. */
void avial_end(void);

/* Every rank waits for every other, after the phase that ended last. */
void avial_barrier(void);

/* Called by programs: control flow ------------------------------------------------------------- */

/* Whether this is a run: 0 in a plan, where there are no arrays to look at. */
int64_t avial_live(void);

/* Control or a footprint depends on data from here on: a plan is then no more than a sample. */
void avial_unknown(void);

/* `condition`; in a plan a loop whose end depends on data takes `avial_trips` turns, wherever it is
 * entered. */
int64_t avial_again(int64_t condition);

/* An assertion does not hold: ends `avial_run_here`; else it is told as an access outside an array
 * is, with ASSERTED for the dimension, and whoever calls this returns. A plan knows the assertions
 * that do not hang on data. */
void avial_fail(const char *text, int64_t line, int64_t column);

/* The same where nobody can return: the process ends, and the last line that it prints says why
 * (`journal.py` reads it). */
_Noreturn void avial_die(const char *text, int64_t line, int64_t column);

/* Called by the engine and the planner --------------------------------------------------------- */

/* Begins a run on `ranks` ranks as `rank`; as -1 a plan: without MPI, memory and bodies. Of each of
 * `arrays` arrays: its dimensions, their extents (those of all arrays one after the other), bytes
 * of an element, and its address (not read in a plan). What the last run held is freed. */
void avial_setup(int64_t ranks, int64_t rank, int64_t arrays, const int64_t *ndims,
                 const int64_t *dims, const int64_t *itemsizes, void **memory);

/* For the next `avial_setup` and those after it: which rank drives each of `count` devices; they are
 * the places from `ranks` on. A program whose phases name none of them need not say it. */
void avial_devices(int64_t count, const int64_t *ranks);

/* After the last phase, of a plan, too: what devices wrote last goes to the hosts of their ranks,
 * and the devices are given back. */
void avial_bring_back(void);

/* `rank` was given that box of the caller's array. As -1: there is no array of the caller's, and
 * what nobody wrote is undefined. */
void avial_input(int64_t rank, int64_t array, const int64_t *box);

/* The caller has that array on a device, and wants it there after the run. Before the first phase,
 * of a plan, too. */
void avial_home(int64_t array, int64_t place);

/* Waits until all that this rank sent has arrived, and frees the buffers of messages. */
void avial_finish(void);

/* A whole run as the only rank: entry: what it calls with a memref descriptor for each of `arrays`
 * arrays, whose shapes are as in `avial_setup`. given: the caller's array of so many `bytes`, or
 * NULL. uses: `HereUse`s. memory: where the program works on arrays that nobody has given, and on
 * those that are not aligned; without `in_place` also where it keeps what is in those that it
 * writes, which get it back where not everything went well. Memory that the program had taken when
 * an assertion failed stays taken (`avial_reclaim`). bell: a descriptor that SIGINT writes to, or
 * -1; the run then ends when somebody calls `avial_stop_here`. */
typedef struct {
    void *entry;
    int64_t arrays;
    const int64_t *ndims, *dims, *itemsizes, *bytes, *uses;
    void **memory, **descriptors, **given;
    int64_t in_place, bell;
} HereCall;

/* Returns a HereResult; refused are more arrays than HERE_ARRAYS, arrays that share memory with one
 * that is written, and runs that report an error. */
int64_t avial_run_here(const HereCall *call);

/* From another thread, a moment after SIGINT came, again and again while it is not 0: ends the run
 * that is under way. A program that was stopped must not be run any more. */
int64_t avial_stop_here(void);

/* Whether that can be done on this system. */
extern int64_t avial_stops_here AVIAL_GLOBAL;

/* In such a run the program calls these in place of OpenMP's functions, which the engine stores
 * there: a failure in a thread ends its part, and then the run. */
extern void (*avial_here_fork_call)(void *, int32_t, void (*)(int32_t *, int32_t *, ...),
                                    ...) AVIAL_GLOBAL;
extern void (*avial_here_for_static_init_8u)(void *, int32_t, int32_t, int32_t *, uint64_t *,
                                             uint64_t *, int64_t *, int64_t, int64_t) AVIAL_GLOBAL;
extern void (*avial_here_dispatch_init_8u)(void *, int32_t, int32_t, uint64_t, uint64_t, int64_t,
                                           int64_t) AVIAL_GLOBAL;
extern int32_t (*avial_here_dispatch_next_8u)(void *, int32_t, int32_t *, uint64_t *, uint64_t *,
                                              int64_t *) AVIAL_GLOBAL;
void avial_fork_call_here(void *place, int32_t count, void (*body)(int32_t *, int32_t *, ...), ...);
void avial_for_static_init_8u_here(void *place, int32_t thread, int32_t schedule, int32_t *last,
                                   uint64_t *lower, uint64_t *upper, int64_t *stride, int64_t step,
                                   int64_t chunk);
void avial_dispatch_init_8u_here(void *place, int32_t thread, int32_t schedule, uint64_t lower,
                                 uint64_t upper, int64_t step, int64_t chunk);
int32_t avial_dispatch_next_8u_here(void *place, int32_t thread, int32_t *last, uint64_t *lower,
                                    uint64_t *upper, int64_t *stride);

/* The words of a Table; at most `capacity` of them are stored in `out`. Returns how many there are.
 *
 *     TABLE_INPUTS      rank, array, box      what each rank was given, or in a plan needs
 *     TABLE_RESULTS     rank, array, box      the last version of what was written, each once
 *     TABLE_MOVES       phase, source, dest (places), messages, bytes
 *                                             all of a plan; of a run those this rank sent
 *     TABLE_HELD        place, bytes, bytes of whole pages (0 for more than PAGED_PLACES places)
 *                                             of a plan: what each place ever holds
 *     TABLE_STAYS       place, array, first and last moment (stays.h)
 *                                             of a plan: when a device needs memory of an array
 *     TABLE_GRANULES    place, array, the first of some granules in a row, and one past the last
 *                                             of a plan: what is used there of a large array
 *     TABLE_COPIES      phase (-1: the results), source, dest, copies, bytes
 *                                             places: all of a plan; of a run those of this rank
 *     TABLE_PHASES      phase, times begun, bytes moved, times not split for a conflict,
 *                       barriers right after it
 *     TABLE_INCOMPLETE  whether the plan depends on data
 *     TABLE_DIRECTORY   array, box, writer (-1: the caller), words of the set of places
 *     TABLE_FOOTPRINTS  phase, place (-1: every host alike), array, Use, box
 *                                             of a plan: the first time the phase touches anything
 *     TABLE_TOTALS      phase, RunEvent, events, ns, bytes, and of the copies in them: how many,
 *                       ns, bytes             also of events that were dropped
 *     TABLE_TURNS       phase, pattern, pattern of the partial results combined at its end (-1: none),
 *                       barriers after it     of a plan that keeps them: each time a phase is begun
 *     TABLE_PATTERNS    PATTERN_WORDS: phase (-1: the results), PhaseKind and PatternFlags, numbers of shares,
 *                       messages and copies; then those: what the ranks do in such a turn, each once
 *                       share: place, its ranges, iterations of the first dimension that wait for no
 *                       message (-1: it is not split so), and (all) below and above those; its work (a double); bytes touched, of the largest box
 *                       message: source, dest (places; -1: all other hosts), bytes, MessageFlags,
 *                       and as in an event: array, count, low, high
 *                       copy: source, dest (places of one rank), bytes, array, whether a message of
 *                       the phase brings something of it
 *     TABLE_CARRIED     set of arrays         for each row of TABLE_MOVES, of a plan: bit 63 is all
 *                                             from the 64th on
 *
 * A box is left out where the array has no dimensions. */
int64_t avial_table(int64_t table, int64_t *out, int64_t capacity);

#endif
