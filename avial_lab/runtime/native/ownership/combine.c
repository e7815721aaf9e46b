#include "combine.h"

#include <string.h>

#include "footprints.h"
#include "messages.h"
#include "pieces.h"
#include "reductions.h"
#include "strides.h"
#include "transfers.h"
#include "turns.h"

INTERNAL void initialise_scratch(const Array *a, i64 array)
{
    if (!phase.combining) {
        for (i64 k = 0; k < phase.footprints.count; k++) {
            const Footprint *f = &phase.footprints.rows[k];
            if (f->array == array && f->use == USE_REDUCE)
                copy_box(a, a->scratch, a->memory, box_at(f->box));
        }
        return;
    }
    for (i64 n = 0; n < a->cells.count; n++) {
        i64 *cell = piece_at(a, &a->cells, n);
        const u64 *contributors = holders_of(a, cell);
        if (!set_has(contributors, run.rank)) continue;
        if (set_first(contributors) == run.rank) copy_box(a, a->scratch, a->memory, cell);
        else fill_identity(a, a->scratch, cell);
    }
}

/* The dimension along which results are divided among the ranks: rows, as phases over them are; the
 * longest where there are fewer rows than ranks. */
static i64 divided_dimension(const Array *a)
{
    i64 longest = 0;
    for (i64 d = 1; d < a->nd && a->whole[a->nd] < run.ranks; d++)
        if (a->whole[a->nd + d] > a->whole[a->nd + longest]) longest = d;
    return longest;
}

/* Transfers of one cell's partial results: to every rank where they are few, else to each rank for
 * the rows that are its own by default. Who gets them is made an owner. */
static void gather_partials(i64 array, const i64 *cell)
{
    Array *a = &run.arrays[array];
    i64 nd = a->nd, part[2 * MAX_DIMS], box[2 * MAX_DIMS];
    u64 *contributors = (u64 *)scratch.per_rank; /* the cell does not outlive `set_owner` */
    memcpy(contributors, holders_of(a, (i64 *)cell), (size_t)run.set_words * 8);
    memcpy(box, cell, (size_t)nd * 16);
    bool few = volume(nd, box) <= SMALL_REDUCTION;
    i64 along = divided_dimension(a), extent = a->whole[nd + along];
    for (i64 owner = 0; owner < run.ranks; owner++) {
        memcpy(part, box, (size_t)nd * 16);
        if (!few) {
            i64 low = (i64)((__int128)owner * extent / run.ranks);
            i64 high = (i64)((__int128)(owner + 1) * extent / run.ranks);
            part[along] = max(box[along], low);
            part[nd + along] = min(box[nd + along], high);
            if (part[along] >= part[nd + along]) continue;
        }
        for (i64 source = 0; source < run.ranks; source++)
            if (set_has(contributors, source))
                add_transfer(source, owner, array, part, source == set_first(contributors));
        if (!few) set_owner(a, part, owner);
    }
    if (few) set_owner(a, box, -1);
}

/* The n-th cell of an array. Where one rank alone contributes it has the result already. */
static void finish_cell(i64 array, i64 n)
{
    Array *a = &run.arrays[array];
    i64 *cell = piece_at(a, &a->cells, n), rank = set_first(holders_of(a, cell));
    if (set_size(holders_of(a, cell)) > 1) {
        gather_partials(array, cell);
        return;
    }
    if (rank == run.rank && a->scratch) copy_box(a, a->memory, a->scratch, cell);
    set_owner(a, cell, rank);
}

/* A cell, the `place`-th of its array that anyone contributes to, and after it those of its
 * payloads: they arrive in that order, so that what was replaced in the key is known. */
static void finish_with_payloads(i64 key, i64 n, i64 place)
{
    finish_cell(key, n);
    for (i64 k = 0; k < run.array_count; k++) {
        Array *a = &run.arrays[k];
        if (!a->cells.count || !is_payload(a->operation) || key_array_of(a->operation) != key)
            continue;
        i64 cell = next_cell(a, 0);
        for (i64 before = 0; before < place; before++) cell = next_cell(a, cell + 1);
        finish_cell(k, cell);
    }
}

/* A program that gave no memory to accumulate in has nothing to send. */
static void require_scratch(void)
{
    for (i64 k = 0; k < phase.transfers.count; k++) {
        const Transfer *t = &phase.transfers.rows[k];
        if (t->source == run.rank && !run.arrays[t->array].scratch) fail(ERROR_NO_SCRATCH);
    }
}

INTERNAL void combine_partials(void)
{
    phase.transfers.count = 0;
    for (i64 k = 0; k < run.array_count; k++) {
        Array *a = &run.arrays[k];
        if (!a->cells.count || is_payload(a->operation)) continue;
        for (i64 n = next_cell(a, 0), place = 0; n >= 0; n = next_cell(a, n + 1), place++)
            finish_with_payloads(k, n, place);
    }
    group_into_messages();
    count_messages();
    keep_partials();
    if (run.plan) return;
    require_scratch();
    start_messages(true);
    complete_receives(combine_message, true);
}
