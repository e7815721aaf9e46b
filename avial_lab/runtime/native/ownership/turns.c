#include "turns.h"

#include <stdlib.h>
#include <string.h>

#include "messages.h"
#include "overlap.h"
#include "partition.h"
#include "pieces.h"
#include "pipelined.h"

INTERNAL bool keeps_turns(void) { return run.plan && avial_keep_turns; }

/* Shares --------------------------------------------------------------------------------------- */

static i64 iterations_in(i64 lo, i64 hi, i64 step) { return hi > lo ? (hi - lo - 1) / step + 1 : 0; }

static i64 step_in(const i64 *space) { return max(space[SPACE_STEP], 1); }

/* In the unit of the weights: those of the slots that the range has of the first dimension. */
static double weighed(const i64 *range, const i64 *space)
{
    i64 slots = space[SPACE_EXTENT], offset = space[SPACE_OFFSET], n = phase.weights.count;
    double sum = 0;
    if (slots <= 0) slots = space[SPACE_UPPER] - space[SPACE_LOWER], offset = -space[SPACE_LOWER];
    for (i64 s = 0; s < n; s++) {
        i64 start = (i64)((__int128)s * slots / n), stop = (i64)((__int128)(s + 1) * slots / n);
        i64 low = max(start, range[0] + offset), high = min(stop, range[1] + offset);
        if (low < high)
            sum += (double)phase.weights.rows[s] * (double)(high - low) / (double)(stop - start);
    }
    return sum;
}

static void keep_share(i64 place, const i64 *range, const i64 *space)
{
    const i64 *second = space + SPACE_WORDS;
    i64 rows = iterations_in(range[0], range[1], step_in(space));
    double work = (double)rows;
    if (phase.weights.count) {
        double found = weighed(range, space);
        if (found > 0) work = found;
    }
    work *= (double)iterations_in(range[2], range[3], step_in(second));
    Share share = {place, rows, {range[0], range[1], range[2], range[3]}, work};
    *APPEND(phase.shares) = share;
}

INTERNAL void keep_shares(i64 place, const i64 *range, const i64 *space)
{
    i64 stop = place < 0 ? run.ranks : place + 1;
    for (i64 p = max(place, 0); p < stop; p++) keep_share(p, range, space);
}

/* Bytes that the place touches: all boxes, and the largest of them. */
static void bytes_touched(i64 place, i64 *all, i64 *largest)
{
    *all = *largest = 0;
    for (i64 k = 0; k < phase.footprints.count; k++) {
        const Footprint *f = &phase.footprints.rows[k];
        if (f->rank != place && f->rank != -1) continue;
        i64 bytes = bytes_of(&run.arrays[f->array], box_at(f->box));
        *all += bytes;
        *largest = max(*largest, bytes);
    }
}

/* Patterns ------------------------------------------------------------------------------------- */

/* The pattern that is being written. */
static void add_words(const i64 *words, i64 n)
{
    Words *to = &scratch.pattern;
    RESERVE(*to, to->count + n);
    memcpy(to->rows + to->count, words, (size_t)n * 8);
    to->count += n;
}

static void begin_pattern(i64 what)
{
    i64 head[PATTERN_WORDS] = {phase.number, what, 0, 0, 0};
    scratch.pattern.count = 0;
    add_words(head, PATTERN_WORDS);
}

/* A share with all ranges that follow and are of the same place; returns how many. */
static i64 add_share(const Body *body, i64 first)
{
    Share s = phase.shares.rows[first];
    i64 ranges = 1, low = s.rows, high = 0, inner = -1, words[SHARE_WORDS], all, largest;
    double work = s.work;
    for (; first + ranges < phase.shares.count; ranges++) {
        const Share *next = &phase.shares.rows[first + ranges];
        if (next->place != s.place) break;
        low += next->rows;
        work += next->work;
    }
    if (ranges == 1 && !phase.combining && phase.kind != PHASE_WIDE &&
        find_interior(body, s.place, s.range, step_in(body->space), &low, &high)) {
        inner = high - low;
        high = s.rows - high;
    }
    bytes_touched(s.place, &all, &largest);
    memcpy(&words[5], &work, 8);
    words[0] = s.place, words[1] = ranges, words[2] = inner, words[3] = low, words[4] = high;
    words[6] = all, words[7] = largest;
    add_words(words, SHARE_WORDS);
    return ranges;
}

/* A message; of a collective one for all that its rank sends. */
static void add_message(const Message *m, bool partial)
{
    const Transfer *t = &phase.transfers.rows[m->first];
    const Array *a = &run.arrays[t->array];
    const i64 *box = box_at(t->box);
    bool first = m->dest == (m->source == 0 ? 1 : 0);
    if (m->source == m->dest || (m->collective && !first)) return;
    i64 how = (m->collective ? MESSAGE_COLLECTIVE : 0) |
              (is_pipelined(m, partial) ? MESSAGE_PIPELINED : 0) |
              (!partial && is_contiguous(m) ? MESSAGE_IN_PLACE : 0);
    i64 words[MESSAGE_WORDS] = {m->source, m->collective ? -1 : m->dest, m->bytes, how, t->array,
                                m->count, a->scalar ? 0 : box[0], a->scalar ? -1 : box[a->nd]};
    add_words(words, MESSAGE_WORDS);
    scratch.pattern.rows[3]++;
}

static void add_messages(bool partial)
{
    for (i64 k = 0; k < phase.messages.count; k++) add_message(&phase.messages.rows[k], partial);
}

static void add_copies(void)
{
    for (i64 k = 0; k < phase.copies.count; k++) {
        const Copy *c = &phase.copies.rows[k];
        i64 bytes = bytes_of(&run.arrays[c->array], box_at(c->box));
        i64 words[COPY_WORDS] = {c->source, c->dest, bytes, c->array, c->late};
        add_words(words, COPY_WORDS);
        scratch.pattern.rows[4]++;
    }
}

/* FNV-1a, a word at a time. */
static u64 hash_of(const void *words, i64 n)
{
    u64 hash = 14695981039346656037u;
    for (i64 k = 0; k < n; k++) {
        u64 word;
        memcpy(&word, (const char *)words + 8 * k, 8);
        hash = (hash ^ word) * 1099511628211u;
        hash ^= hash >> 29;
    }
    return hash;
}

static bool is_pattern(i64 id)
{
    const Words *now = &scratch.pattern, *begins = &run.pattern_begins;
    i64 from = begins->rows[id];
    i64 to = id + 1 < begins->count ? begins->rows[id + 1] : run.patterns.count;
    return to - from == now->count &&
           !memcmp(run.patterns.rows + from, now->rows, (size_t)now->count * 8);
}

static void grow_slots(void)
{
    Words old = run.pattern_slots;
    run.pattern_slots = (Words){0};
    RESERVE(run.pattern_slots, max(2 * old.count, 64));
    run.pattern_slots.count = max(2 * old.count, 64);
    memset(run.pattern_slots.rows, 0, (size_t)run.pattern_slots.count * 8);
    for (i64 k = 0; k < old.count; k++) {
        i64 id = old.rows[k] - 1;
        if (id < 0) continue;
        u64 mask = (u64)run.pattern_slots.count - 1, at = (u64)run.pattern_hashes.rows[id];
        while (run.pattern_slots.rows[at & mask]) at++;
        run.pattern_slots.rows[at & mask] = id + 1;
    }
    RELEASE(old);
}

/* The number of the pattern that was written: of the same one where there is one already. */
static i64 pattern_kept(void)
{
    u64 hash = hash_of(scratch.pattern.rows, scratch.pattern.count), at = hash;
    if (2 * (run.pattern_begins.count + 1) > run.pattern_slots.count) grow_slots();
    u64 mask = (u64)run.pattern_slots.count - 1;
    for (; run.pattern_slots.rows[at & mask]; at++) {
        i64 id = run.pattern_slots.rows[at & mask] - 1;
        if ((u64)run.pattern_hashes.rows[id] == hash && is_pattern(id)) return id;
    }
    i64 id = run.pattern_begins.count;
    run.pattern_slots.rows[at & mask] = id + 1;
    *APPEND(run.pattern_begins) = run.patterns.count;
    *APPEND(run.pattern_hashes) = (i64)hash;
    RESERVE(run.patterns, run.patterns.count + scratch.pattern.count);
    memcpy(run.patterns.rows + run.patterns.count, scratch.pattern.rows,
           (size_t)scratch.pattern.count * 8);
    run.patterns.count += scratch.pattern.count;
    return id;
}

/* Turns ---------------------------------------------------------------------------------------- */

static i64 pattern_of_phase(const Body *body)
{
    begin_pattern(phase.kind | (phase.unsplit ? PATTERN_UNSPLIT : 0));
    for (i64 k = 0; k < phase.shares.count;) {
        k += add_share(body, k);
        scratch.pattern.rows[2]++;
    }
    add_messages(false);
    add_copies();
    return pattern_kept();
}

INTERNAL void keep_turn(const Body *body)
{
    if (!keeps_turns()) return;
    i64 words = phase.shares.count * (i64)(sizeof(Share) / 8);
    u64 shares = hash_of(phase.shares.rows, words);
    MemoEntry *found = phase.memo_found, *open = phase.memo_open;
    bool known = found && found->pattern >= 0 && found->shares == shares;
    i64 pattern = known ? found->pattern : pattern_of_phase(body);
    *APPEND(run.turns) = (Turn){phase.number, pattern, -1, 0};
    if (found) found->pattern = pattern, found->shares = shares;
    if (open) open->pattern = pattern, open->shares = shares;
}

INTERNAL void keep_results(void)
{
    if (!keeps_turns() || !phase.copies.count) return;
    begin_pattern(PHASE_REPLICATE);
    add_copies();
    *APPEND(run.turns) = (Turn){phase.number, pattern_kept(), -1, 0};
}

INTERNAL void keep_partials(void)
{
    if (!keeps_turns() || !run.turns.count) return;
    begin_pattern(PATTERN_PARTIAL);
    add_messages(true);
    if (scratch.pattern.rows[3]) run.turns.rows[run.turns.count - 1].partials = pattern_kept();
}
