#include "stays.h"

#include "footprints.h"
#include "pieces.h"

/* The units between the first byte of the box and the last, from dimension d on, where the indices
 * before it lead `at`: all that lie there, if its rows begin no more than a unit apart. */
static void mark(u64 *bits, i64 unit, const Array *a, const i64 *box, const i64 *stride, i64 d, i64 at)
{
    i64 first = at, last = at + a->itemsize - 1;
    for (i64 k = d; k < a->nd; k++) {
        if (box[a->nd + k] <= box[k]) return;
        first += box[k] * stride[k];
        last += (box[a->nd + k] - 1) * stride[k];
    }
    if (d < a->nd && stride[d] > unit) {
        for (i64 i = box[d]; i < box[a->nd + d]; i++)
            mark(bits, unit, a, box, stride, d + 1, at + i * stride[d]);
        return;
    }
    for (i64 g = first / unit; g <= last / unit; g++) bits[g / 64] |= (u64)1 << g % 64;
}

INTERNAL void mark_units(u64 *bits, i64 unit, const Array *a, const i64 *box)
{
    i64 stride[MAX_DIMS] = {0};
    if (a->nd) stride[a->nd - 1] = a->itemsize;
    for (i64 d = a->nd - 1; d > 0; d--) stride[d - 1] = stride[d] * a->whole[a->nd + d];
    mark(bits, unit, a, box, stride, 0, 0);
}

static void note_granules(Stay *s, const Array *a, const i64 *box)
{
    i64 bytes = bytes_of(a, a->whole);
    if (bytes < LEAST_MAPPED) return;
    if (!s->granules) s->granules = zeroed((bytes / GRANULE + 64) / 64, sizeof *s->granules);
    mark_units(s->granules, GRANULE, a, box);
}

/* Where an array is the caller's memory there is a copy of it from the first write on. */
static void note_stay(i64 place, i64 array, const i64 *box, bool writes)
{
    bool home = run.arrays[array].home == place;
    if (place < run.ranks || (home && !writes)) return;
    Stay *s = &run.stays[(place - run.ranks) * run.array_count + array];
    if (!s->first) s->first = run.moment;
    s->last = run.moment;
    if (!home) note_granules(s, &run.arrays[array], box);
}

INTERNAL void note_stays(void)
{
    if (!run.plan || run.places == run.ranks) return;
    if (!run.stays) run.stays = zeroed((run.places - run.ranks) * run.array_count, sizeof *run.stays);
    for (i64 k = 0; k < phase.footprints.count; k++) {
        const Footprint *f = &phase.footprints.rows[k];
        note_stay(f->rank, f->array, box_at(f->box), f->use != USE_READ);
    }
    for (i64 k = 0; k < phase.copies.count; k++) {
        const Copy *c = &phase.copies.rows[k];
        note_stay(c->source, c->array, box_at(c->box), false);
        note_stay(c->dest, c->array, box_at(c->box), true);
    }
    for (i64 k = 0; k < phase.transfers.count; k++) {
        const Transfer *t = &phase.transfers.rows[k];
        note_stay(t->source, t->array, box_at(t->box), false);
        note_stay(t->dest, t->array, box_at(t->box), true);
    }
}

INTERNAL void keep_copies(void)
{
    for (i64 k = 0; run.stays && k < run.array_count; k++) {
        i64 device = run.arrays[k].home - run.ranks;
        Stay *s = &run.stays[max(device, 0) * run.array_count + k];
        if (device >= 0 && s->first) s->last = run.moment;
    }
}
