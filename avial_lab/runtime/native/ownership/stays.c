#include "stays.h"

static void note_stay(i64 place, i64 array)
{
    if (place < run.ranks || run.arrays[array].home == place) return; /* the caller's memory */
    Stay *s = &run.stays[(place - run.ranks) * run.array_count + array];
    if (!s->first) s->first = run.moment;
    s->last = run.moment;
}

INTERNAL void note_stays(void)
{
    if (!run.plan || run.places == run.ranks) return;
    if (!run.stays) run.stays = zeroed((run.places - run.ranks) * run.array_count, sizeof *run.stays);
    for (i64 k = 0; k < phase.footprints.count; k++)
        note_stay(phase.footprints.rows[k].rank, phase.footprints.rows[k].array);
    for (i64 k = 0; k < phase.copies.count; k++) {
        const Copy *c = &phase.copies.rows[k];
        note_stay(c->source, c->array), note_stay(c->dest, c->array);
    }
}
