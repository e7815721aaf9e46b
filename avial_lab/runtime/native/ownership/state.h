/* The state of a run that the files of the runtime share; how it fails, and how lists grow.
 *
 *     run      from `avial_setup` to the next one: the arrays, who holds what of them, the counts
 *     phase    the phase at hand: footprints → transfers → messages → ranges
 *     scratch  room that a function uses while it runs, kept so that it need not be allocated again
 *
 * A place is a rank's host memory or one of its devices; places 0 … ranks - 1 are the hosts. A
 * directory is a list of pieces that tile an array: a box, the place that wrote it last (-1: the
 * caller), and the set of places that hold this version. Every rank keeps the same directories.
 */
#ifndef AVIAL_STATE_H
#define AVIAL_STATE_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ownership.h"
#include "../devices/places.h"

/* What several files use, and nobody else. As one unit (`runtime.c`) all of it is static, so that
 * the compiler may inline across files; in a file compiled by itself it is hidden. */
#ifdef AVIAL_ONE_UNIT
#define INTERNAL static
#define INTERNAL_DATA static
#else
#define INTERNAL __attribute__((visibility("hidden")))
#define INTERNAL_DATA extern INTERNAL
#endif

typedef int64_t i64;
typedef uint64_t u64;

static inline i64 min(i64 a, i64 b) { return a < b ? a : b; }
static inline i64 max(i64 a, i64 b) { return a > b ? a : b; }

/* Lists that grow ------------------------------------------------------------------------------ */

#define VECTOR(Type)         \
    struct {                 \
        Type *rows;          \
        i64 count, capacity; \
    }

/* Room for `n` rows; for one more, which is returned; none at all. The first two fail, see
 * `fail`. */
#define RESERVE(list, n) \
    ((list).rows = grow((list).rows, &(list).capacity, (n), sizeof *(list).rows))
#define APPEND(list) (RESERVE(list, (list).count + 1), &(list).rows[(list).count++])
#define RELEASE(list) (free((list).rows), (list).rows = NULL, (list).count = (list).capacity = 0)

/* Makes the list `to` have the `n` rows at `from`, which may be NULL where n is 0. */
#define COPY_ROWS(to, from, n)                                                                \
    (RESERVE(to, n), (n) ? memcpy((to).rows, (from), (size_t)(n) * sizeof *(to).rows) : NULL, \
     (to).count = (n))

typedef VECTOR(i64) Words;

/* Arrays --------------------------------------------------------------------------------------- */

/* Pieces of one array that do not overlap, ordered by where they begin; `stride` words each. */
typedef struct {
    i64 *rows, count, capacity;
    i64 widest; /* longest extent in dimension 0: how far left of a box to look; -1 unknown */
} PieceList;

typedef struct {
    i64 nd, itemsize;        /* dimensions, 1 at least; bytes of an element */
    i64 whole[2 * MAX_DIMS]; /* the box of all elements */
    bool scalar;             /* without dimensions for the caller; here one element in one */
    i64 home;                /* the device where the caller has it; 0: it is on hosts */
    bool undefined;          /* no array of the caller's is behind it */
    bool touched;            /* by the phase at hand, where that is asked (memo.c) */
    i64 unwritten;           /* elements that no phase wrote yet; kept where there is one rank */
    i64 stride;              /* words of a piece: box, writer, set of ranks */
    char *memory;            /* the caller's; NULL in a plan */
    char *scratch;           /* the program's, for the phase at hand: where it accumulates */
    i64 operation;           /* of the reduction of the phase at hand */
    PieceList directory;     /* who wrote and who holds each element */
    PieceList given;         /* which ranks were given it, or in a plan need it, before the run */
    PieceList ever_held;     /* of a plan: which ranks have ever held it, in any version */
    PieceList cells;         /* of the reduction of the phase at hand: which ranks contribute */
} Array;

/* A phase -------------------------------------------------------------------------------------- */

typedef struct {
    i64 rank; /* the place; -1: every host */
    i64 array, use, operation;
    i64 box; /* where it begins in `phase.boxes` */
} Footprint;

/* Between places of two ranks: from a device that wrote to another one, else from host to host. */
typedef struct {
    i64 source, dest, array;
    i64 box; /* where it begins in `phase.boxes` */
    bool first; /* of partial results: it replaces what is there, others are combined with it */
} Transfer;

/* Between two places of one rank. late: of what a message of the phase brings. */
typedef struct {
    i64 source, dest, array;
    i64 box; /* where it begins in `phase.boxes` */
    bool late;
} Copy;

/* All transfers of a phase from one place to another, or from a host to itself. */
typedef struct {
    i64 source, dest;
    i64 tag;          /* of those from the one rank to the other, which one it is */
    i64 first, count; /* its transfers */
    i64 bytes;
    i64 buffer;      /* of `run.buffers` while it is under way to this rank; else -1 */
    char *data;      /* its bytes: in the buffer, or where they belong */
    bool collective; /* it is part of a collective call */
    bool in_place;   /* it arrives where it belongs, without a copy */
} Message;

/* Room for a message, and the requests that use it. stage: where it is one from device to device. */
typedef struct {
    char *data;
    Stage *stage;
    i64 capacity; /* bytes */
    bool busy;    /* a message has it */
    bool sending; /* it is free again when the requests are complete */
    i64 *requests, count, request_capacity;
} Buffer;

typedef struct {
    i64 phase, source, dest, messages, bytes;
    u64 arrays; /* of a plan: which are in the messages; bit 63 for all from the 64th on */
} MessageTotal;

typedef struct {
    i64 phase, source, dest, copies, bytes; /* places */
} CopyTotal;

typedef VECTOR(Footprint) Footprints;
typedef VECTOR(Copy) Copies;
typedef VECTOR(Transfer) Transfers;
typedef VECTOR(Message) Messages;

/* What a phase came to, for these footprints and these directories (memo.c). */
typedef struct {
    Footprints footprints;
    Words boxes;         /* the first `footprint_words` are those of the footprints */
    Words before, after; /* the directories: array, pieces, their words */
    Transfers transfers;
    Copies copies;
    Messages messages;
    i64 footprint_words;
    i64 pattern; /* of the turns that it is (turns.c), with these shares; -1: not known */
    u64 shares;
    bool valid;
} MemoEntry;

/* What a plan keeps of a phase that is begun once (turns.c): numbers of patterns, -1 for none. */
typedef struct {
    i64 phase, pattern, partials, barriers;
} Turn;

/* A range of a place, its iterations of the first dimension, and its work. */
typedef struct {
    i64 place, rows, range[4];
    double work;
} Share;

/* All events of one kind in a phase, those dropped from the trace among them. copies: of the events
 * in which something was copied, how many, and what the copying took and copied. */
typedef struct {
    i64 events, ns, bytes, copies, copies_ns, copies_bytes;
} EventTotal;

enum { MEMO_ENTRIES = 4 };

typedef struct {
    i64 begun;   /* times */
    i64 bytes;   /* moved between ranks; of a run, all ranks' */
    i64 unsplit; /* times it could not be split for a conflict */
    i64 barriers; /* after it */
    MemoEntry memo[MEMO_ENTRIES];
    i64 memo_misses; /* in a row */
    i64 memo_next;   /* the entry to be replaced next */
    EventTotal totals[EVENT_KINDS];
    bool kept; /* its footprints, for people to look at */
} PhaseRecord;

/* On a device; moments from 1, 0 for never. granules: a bit for each that is used, of an array that
 * is mapped by them; else NULL. */
typedef struct {
    i64 first, last;
    u64 *granules;
} Stay;

typedef struct {
    void *site; /* the return address of its call of `avial_again` */
    i64 turns;
} Loop;

/* The state ------------------------------------------------------------------------------------ */

typedef struct {
    i64 ranks, rank; /* how many, which; -1 in a plan */
    i64 places;      /* the hosts and the devices */
    i64 *driver;     /* which rank drives each place */
    i64 set_words;   /* of a set of places */
    bool plan;
    bool incomplete; /* the plan depends on data */
    bool broken;     /* `fail` was called: the directories may differ from the other ranks' */
    Array *arrays;
    i64 array_count;
    VECTOR(PhaseRecord) phases;
    VECTOR(MessageTotal) totals;
    VECTOR(CopyTotal) copied;
    i64 started_copies;
    i64 moment;  /* phases that were begun so far */
    Stay *stays; /* of a plan: by device and array */
    i64 total_hint;    /* the total that is likely to be counted next */
    i64 collectives;   /* begun so far */
    i64 last_clock_ns; /* when the last event ended */
    VECTOR(Buffer) buffers;
    VECTOR(Loop) loops;
    Words kept_footprints; /* phase, rank, array, use, box: words of TABLE_FOOTPRINTS */
    i64 kept_phases;
    VECTOR(Turn) turns; /* of a plan that keeps them, and its patterns one after the other */
    Words patterns, pattern_begins, pattern_hashes, pattern_slots;
    Words total_slots; /* where `totals` has a phase and a pair of ranks */
    jmp_buf failed; /* where the entry point that was called last leaves */
} Run;

typedef struct {
    i64 number, kind;
    /* By `avial_layout` and `avial_cost`, for one phase. */
    i64 *members, member_count; /* the places that take part, in the order of their parts */
    i64 block, grid_columns;
    Words weights;
    bool layout_set;
    /* What is derived of it, in this order. */
    Footprints footprints;
    Words boxes;
    Transfers transfers;
    Copies copies;
    Messages messages;
    Words ranges;   /* this rank's: lo0, hi0, lo1, hi1 each … */
    Words places;   /* … and on which place each runs */
    VECTOR(Share) shares; /* of a plan that keeps turns: the ranges of all places */
    bool unsplit;   /* on one rank, or on every rank alike */
    bool combining; /* partial results of several ranks are combined at its end */
    MemoEntry *memo_open, *memo_found; /* to be filled; to be used */
    /* While it runs. */
    i64 reporting_rank;  /* whose footprints are being reported */
    bool out_of_memory;  /* for a footprint */
    i64 interior_ranges; /* those before the messages are waited for */
    i64 pending;         /* messages under way to this rank by themselves */
    i64 place;           /* where the range at hand runs */
    bool copies_wait;    /* late ones of this rank are still to be made */
    bool range_open;     /* the program runs a range now … */
    i64 range_started_ns;
} CurrentPhase;

typedef struct {
    i64 *per_rank;             /* two words a place */
    Words lacking;             /* pieces: a stack (transfers.c) */
    Words pieces, more_pieces; /* what `extract_pieces` took out */
    Words merged;              /* one piece */
    Words pattern;             /* that is written (turns.c) */
    VECTOR(int) counts;        /* of a collective, two a rank */
    VECTOR(bool) replaced;     /* elements of a key that were replaced last; its payloads' follow */
} Scratch;

INTERNAL_DATA Run run;
INTERNAL_DATA CurrentPhase phase;
INTERNAL_DATA Scratch scratch;

static inline bool is_device(i64 place) { return place >= run.ranks; }
static inline bool is_own(i64 place) { return run.driver[place] == run.rank; }

/* Failure -------------------------------------------------------------------------------------- */

/* Keeps the first error, with the phase's number. */
INTERNAL void note_error(i64 code);

/* Notes MPI's error, if it is one. */
INTERNAL void check(int mpi_code);

/* Notes the error and leaves the entry point by a jump to `run.failed`, for good: what is known of
 * the arrays no longer agrees with the other ranks. Not from a function that the program calls
 * while an entry point is active (its own frames lie between). */
INTERNAL _Noreturn void fail(i64 code);

/* Memory --------------------------------------------------------------------------------------- */

/* `data` with room for `needed` elements of `size` bytes, its old content kept; `grow` fails where
 * there is none, `try_grow` returns NULL, and then nothing has changed. */
INTERNAL void *grow(void *data, i64 *capacity, i64 needed, i64 size);
INTERNAL void *try_grow(void *data, i64 *capacity, i64 needed, i64 size);

/* Cleared memory, never NULL. */
INTERNAL void *zeroed(i64 count, i64 size);

/* Frees all that the last run holds, and forgets it; what the engine set stays. */
INTERNAL void reset_run(void);

/* Makes `a` the array of that shape, which nobody has written yet. dims: `nd` extents. */
INTERNAL void init_array(Array *a, i64 nd, const i64 *dims, i64 itemsize, char *memory);

#endif
