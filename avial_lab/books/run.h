/* The run: what it consists of, how it fails, and its memory. */

#define _POSIX_C_SOURCE 200809L
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int64_t i64;
typedef uint64_t u64;
typedef void (*Touches)(const i64 *params, const i64 *range);

enum { MAX_DIMS = 32, SMALL_REDUCTION = 4096 };
enum { NO_MEMORY = 0x7fffff01, TOO_MANY_DIMS = 0x7fffff02, NOT_GIVEN = 0x7fffff03 };
enum { NO_SCRATCH = 0x7fffff04 };
/* A wide replicate writes beyond its parts, what others write too: none is cut further. */
enum Kind { REPLICATE, TASK, EVERYWHERE, WIDE };
enum Use { READ, WRITE, UPDATE, REDUCE };
enum { SKETCHED_PHASES = 64, SKETCHED_RANKS = 16, SKETCHED_ITEMS = 4096 };
/* An operation is its kind * 16 + the elements' type. A leader is the least or greatest of all, and the
 * first of those alike; its companions, say the place it was found at, are replaced whenever it is.
 * Their operation has the leader's array + 1 from bit 16 on. */
enum { ARGMIN = 11, ARGMAX, ARGMIN_UNSIGNED, ARGMAX_UNSIGNED, COMPANION };
enum EventKind { RAN, RECEIVED, SENT, GOT_SHARED, SENT_SHARED, COPIED, MET, EVENT_KINDS };
/* A row of the trace. kind: an EventKind, and PARTIAL where results are being combined. A copy is the
 * part of a send before `mid`, or of a receive after it. array, count: the first thing moved, and how
 * many there are; low, high: its extent in dimension 0, (0, -1) where that is not told. number: which
 * of the collectives it is. */
enum { PARTIAL = 16, EVENT_WORDS = 13 };
typedef struct {
    int64_t phase, turn, kind, start, mid, end, bytes, peer, array, count, low, high, number;
} Event;
_Static_assert(sizeof(Event) == EVENT_WORDS * 8, "rows of words");

#define SHARED __attribute__((weak))

/* Set by the engine; weak, because the program's own module may bring them too. Handles are 64 bits
 * wide whatever the MPI at hand makes of them. */
SHARED i64 avial_comm, avial_byte, avial_status_ignore;
SHARED i64 avial_error;    /* the first failure: a code of MPI's or of ours | phase << 32 */
SHARED i64 *avial_journal; /* the phase that runs now */
SHARED i64 *avial_counts;  /* for who watches: bytes sent, how often each phase began */
SHARED i64 avial_counts_capacity; /* phases */
SHARED i64 *avial_events;  /* Event rows in nanoseconds; peer -1 is all ranks */
SHARED i64 avial_events_capacity, avial_events_count; /* rows; what does not fit is dropped … */
SHARED i64 avial_events_dropped;                      /* … and counted, and is in the totals */
SHARED i64 avial_chunk = 1 << 30;                     /* bytes one MPI call moves at most */
SHARED i64 avial_staging = 256 << 20;                 /* bytes under way before a send waits */
SHARED i64 avial_piece = 256 << 10;                   /* bytes of one piece of a long message */

/* Weak: a plan, or one rank, runs where there is no MPI. */
SHARED int MPI_Isend(const void *, int, i64 type, int peer, int tag, i64 comm, i64 *request);
SHARED int MPI_Irecv(void *, int, i64 type, int peer, int tag, i64 comm, i64 *request);
SHARED int MPI_Wait(i64 *request, void *status);
SHARED int MPI_Test(i64 *request, int *flag, void *status);
SHARED int MPI_Barrier(i64 comm);
SHARED int MPI_Bcast(void *, int, i64 type, int root, i64 comm);
SHARED int MPI_Allgatherv(const void *, int, i64 type, void *, const int *counts, const int *starts,
                          i64 received, i64 comm);

/* Pieces of one array that tile it, by where they start. */
typedef struct {
    i64 *rows, count, capacity;
    i64 widest; /* longest extent in dimension 0: how far left of a box to look; -1 unknown */
} List;

typedef struct {
    i64 nd, itemsize;
    i64 whole[2 * MAX_DIMS]; /* the box of all elements */
    bool scalar;             /* 0-d for the caller, one element in one dimension here */
    bool undefined;          /* no array of the caller's is behind it */
    bool touched;            /* by the phase at hand, where that is asked */
    i64 unwritten;           /* elements that no phase wrote yet; kept where there is one rank */
    i64 stride;              /* words of a piece: box, writer, set of ranks */
    char *memory, *scratch;
    i64 op;     /* of this phase's reduction */
    List state; /* the book */
    List given; /* what each rank got, or in a plan needs, before the run */
    List ever;  /* a plan's: what each rank has ever held */
    List cells; /* of this phase's reductions: which ranks contribute */
} Array;

typedef struct { i64 rank, array, use, op, at; } Item; /* a footprint; rank -1: every rank's */
typedef struct { i64 source, dest, array, at; bool first; } Move;
/* One for each pair of ranks. shared: it travels in a collective; placed: it arrives where it belongs. */
typedef struct {
    i64 source, dest, first, count, bytes, buffer;
    char *data;
    bool shared, placed;
} Message;
typedef struct { char *data; i64 capacity; bool busy, sending; i64 *requests, count, room; } Buffer;
/* arrays: what a plan foresees in the messages, bit 63 for all from the 64th on. */
typedef struct { i64 phase, source, dest, messages, bytes; u64 arrays; } Sum;

#define ROWS(Type) struct { Type *rows; i64 count, capacity; }

/* What a phase came to, given these footprints and these books: loops repeat themselves, and to compare
 * is much quicker than to derive. Books are kept as array, count, pieces. */
typedef struct {
    ROWS(Item) items;
    ROWS(i64) boxes, before, after; /* boxes: first those of the items, `known` words */
    ROWS(Move) moves;
    ROWS(Message) messages;
    i64 known;
    bool valid;
} Memory;

/* Of one kind of event: exact, whatever was dropped. copies: those with a copy in them, and theirs. */
typedef struct { i64 events, ns, bytes, copies, copies_ns, copies_bytes; } Total;

typedef struct {
    i64 begun, bytes, whole, barriers, misses, next;
    Memory memories[4];
    Total totals[EVENT_KINDS];
    bool sketched;
} Phase;

/* The run. */
static i64 ranks, me, words, narrays, widest_row;
static bool plan, incomplete, broken;
static jmp_buf way_out;
static Array *arrays;
static ROWS(Phase) phases;
static ROWS(Sum) sums;
static i64 sum_hint, collectives_done, last_look;
static ROWS(Buffer) pool;
static ROWS(struct { void *site; i64 times; }) loops;
static ROWS(i64) sketches; /* phase, rank, array, use, box */
static i64 nsketched;

/* The phase at hand. */
static i64 now, kind, recording, interior, pending, run_started;
static bool exhausted; /* no memory for a footprint */
static bool alone;     /* on one rank, or on every rank alike */
static bool combining; /* partial results of several ranks */
static bool open_run;
static Memory *learning, *recalled;
static ROWS(Item) items;
static ROWS(i64) boxes;
static ROWS(Move) moves;
static ROWS(Message) messages;
static ROWS(i64) ranges; /* mine: lo0, hi0, lo1, hi1 each */
static i64 *members, nmembers, block_size, columns, *weights, nweights;
static bool layout_set;
static i64 *of_rank; /* two words for each rank, for whoever needs them */
static ROWS(i64) found, other, fresh;
static ROWS(int) counts;
static ROWS(bool) better; /* which elements of a leader were replaced last: its companions' follow */

/* Failure and memory ---------------------------------------------------------------------------- */

static void note_error(i64 code)
{
    if (!avial_error) avial_error = (code & 0xffffffff) | now << 32;
}

/* Leaves the entry point: what is known of the arrays no longer agrees with the other ranks. */
static _Noreturn void fail(i64 code)
{
    note_error(code);
    broken = true;
    longjmp(way_out, 1);
}

/* `data` with room for `needed` elements; NULL, and nothing lost, where there is none. */
static void *tried(void *data, i64 *capacity, i64 needed, i64 size)
{
    if (needed <= *capacity) return data;
    i64 wanted = needed < 2 * *capacity ? 2 * *capacity : needed < 16 ? 16 : needed;
    void *more = wanted > PTRDIFF_MAX / size ? NULL : realloc(data, (size_t)(wanted * size));
    if (more) *capacity = wanted;
    return more;
}

static void *grown(void *data, i64 *capacity, i64 needed, i64 size)
{
    void *more = tried(data, capacity, needed, size);
    if (!more && needed) fail(NO_MEMORY);
    return more;
}

#define RESERVE(list, n) ((list).rows = grown((list).rows, &(list).capacity, (n), sizeof *(list).rows))
#define APPEND(list) (RESERVE(list, (list).count + 1), &(list).rows[(list).count++])
#define FORGET(list) (free((list).rows), (list).rows = NULL, (list).count = (list).capacity = 0)

static void check(int code)
{
    if (code) note_error(code);
}

static i64 now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (i64)time.tv_sec * 1000000000 + time.tv_nsec;
}

static i64 clock_if_traced(void)
{
    return avial_events ? now_ns() : 0;
}

/* `e` with its phase and its turn, which ended then. */
static void log_until(Event e, i64 end)
{
    Phase *p = &phases.rows[now];
    e.phase = now;
    e.turn = p->begun;
    e.end = last_look = end;
    Total *t = &p->totals[e.kind % PARTIAL];
    t->events++;
    t->ns += e.end - e.start;
    t->bytes += e.bytes;
    if (e.mid) {
        bool sends = e.kind % PARTIAL == SENT || e.kind % PARTIAL == SENT_SHARED;
        t->copies++;
        t->copies_ns += sends ? e.mid - e.start : e.end - e.mid;
        t->copies_bytes += e.bytes;
    }
    if (avial_events_count < avial_events_capacity)
        memcpy(avial_events + EVENT_WORDS * avial_events_count++, &e, sizeof e);
    else avial_events_dropped++;
}

static void log_event(Event e)
{
    if (avial_events) log_until(e, now_ns());
}

static void log_copy(i64 start, i64 array)
{
    log_event((Event){.kind = COPIED, .start = start, .peer = -1, .array = array, .count = 1, .high = -1});
}
