#include "memo.h"

#include <string.h>

/* Directories as words: number of the array, count of its pieces, the pieces' words ------------ */

static void save_directories(Words *to)
{
    to->count = 0;
    for (i64 k = 0; k < run.array_count; k++) {
        if (!run.arrays[k].touched) continue;
        const PieceList *l = &run.arrays[k].directory;
        i64 size = l->count * run.arrays[k].stride;
        RESERVE(*to, to->count + size + 2);
        i64 *at = to->rows + to->count;
        at[0] = k;
        at[1] = l->count;
        if (size) memcpy(at + 2, l->rows, (size_t)size * 8);
        to->count += size + 2;
    }
}

static bool same_directories(const Words *saved)
{
    for (i64 at = 0; at < saved->count;) {
        const i64 *words = saved->rows + at;
        const Array *a = &run.arrays[words[0]];
        i64 size = words[1] * a->stride;
        if (words[1] != a->directory.count) return false;
        if (size && memcmp(words + 2, a->directory.rows, (size_t)size * 8)) return false;
        at += 2 + size;
    }
    return true;
}

INTERNAL void memo_restore_directories(void)
{
    const Words *saved = &phase.memo_found->after;
    for (i64 at = 0; at < saved->count;) {
        const i64 *words = saved->rows + at;
        Array *a = &run.arrays[words[0]];
        PieceList *l = &a->directory;
        i64 size = words[1] * a->stride;
        l->rows = grow(l->rows, &l->capacity, words[1], a->stride * 8);
        if (size) memcpy(l->rows, words + 2, (size_t)size * 8);
        l->count = words[1];
        l->widest = -1;
        at += 2 + size;
    }
}

/* Entries -------------------------------------------------------------------------------------- */

static bool matches(const MemoEntry *m)
{
    const Footprints *now = &phase.footprints;
    return m->valid && m->footprints.count == now->count &&
           m->footprint_words == phase.boxes.count &&
           !memcmp(m->footprints.rows, now->rows, (size_t)now->count * sizeof(Footprint)) &&
           !memcmp(m->boxes.rows, phase.boxes.rows, (size_t)phase.boxes.count * 8) &&
           same_directories(&m->before);
}

/* The oldest entry, with the footprints and directories of now. */
static MemoEntry *begin_entry(PhaseRecord *record)
{
    MemoEntry *m = &record->memo[record->memo_next];
    record->memo_next = (record->memo_next + 1) % MEMO_ENTRIES;
    m->valid = false;
    m->pattern = -1;
    m->footprint_words = phase.boxes.count;
    for (i64 k = 0; k < run.array_count; k++) run.arrays[k].touched = false;
    for (i64 k = 0; k < phase.footprints.count; k++)
        run.arrays[phase.footprints.rows[k].array].touched = true;
    COPY_ROWS(m->footprints, phase.footprints.rows, phase.footprints.count);
    save_directories(&m->before);
    return m;
}

/* On one rank nothing moves, and to compare directories would take longer than to update them.
 * Phases that never repeat are kept ever more rarely: after 8 misses in a row at powers of two. */
INTERNAL bool memo_find(void)
{
    PhaseRecord *record = &run.phases.rows[phase.number];
    if (phase.unsplit || run.places == 1 || !phase.footprints.count) return false;
    for (i64 k = 0; k < MEMO_ENTRIES; k++) {
        MemoEntry *m = &record->memo[k];
        if (!matches(m)) continue;
        COPY_ROWS(phase.boxes, m->boxes.rows, m->boxes.count);
        COPY_ROWS(phase.transfers, m->transfers.rows, m->transfers.count);
        COPY_ROWS(phase.messages, m->messages.rows, m->messages.count);
        COPY_ROWS(phase.copies, m->copies.rows, m->copies.count);
        phase.memo_found = m;
        record->memo_misses = 0;
        return true;
    }
    i64 misses = ++record->memo_misses;
    if (misses > 8 && (misses & (misses - 1))) return false;
    phase.memo_open = begin_entry(record);
    return false;
}

INTERNAL void memo_store_messages(void)
{
    MemoEntry *m = phase.memo_open;
    if (phase.unsplit || phase.combining) m = phase.memo_open = NULL;
    if (!m) return;
    COPY_ROWS(m->boxes, phase.boxes.rows, phase.boxes.count);
    COPY_ROWS(m->transfers, phase.transfers.rows, phase.transfers.count);
    COPY_ROWS(m->messages, phase.messages.rows, phase.messages.count);
    COPY_ROWS(m->copies, phase.copies.rows, phase.copies.count);
}

INTERNAL void memo_store_directories(void)
{
    if (!phase.memo_open) return;
    save_directories(&phase.memo_open->after);
    phase.memo_open->valid = true;
}
