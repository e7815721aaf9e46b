/* The inner part of a range, which needs nothing that is under way. */

/* Whether a range touches nothing that is under way to this rank. */
static bool clean(const Body *body, const i64 *range)
{
    i64 known = items.count, words_known = boxes.count;
    bool fine = true;
    record_range(-2, range, body); /* of no rank, so that nothing is left out for being known */
    for (i64 k = known; k < items.count && fine; k++)
        for (i64 n = 0; n < messages.count && fine; n++) {
            const Message *m = &messages.rows[n];
            if (m->dest != me || m->buffer < 0) continue;
            for (i64 j = m->first; j < m->first + m->count && fine; j++)
                fine = moves.rows[j].array != items.rows[k].array ||
                       !overlap(arrays[items.rows[k].array].nd, box_of(moves.rows[j].at),
                                box_of(items.rows[k].at));
        }
    items.count = known;
    boxes.count = words_known;
    return fine;
}

/* A part of `iterations` from `lo`, `step` apart, cut to those numbered [from, to). */
typedef struct { i64 range[4], step, count; } Part;

static void piece_of(const Part *part, i64 from, i64 to, i64 *range)
{
    memcpy(range, part->range, sizeof part->range);
    tight(part->range[0] + from * part->step, part->range[0] + to * part->step, part->step, range);
}

static bool clean_between(const Body *body, const Part *part, i64 from, i64 to)
{
    i64 range[4];
    piece_of(part, from, to, range);
    return clean(body, range);
}

/* How many iterations to leave out at the lower (or upper) end until nothing up to the middle one is
 * under way; few as a rule, so 0, 1, 2, 4, … are tried, and then what lies between the last two. */
static i64 edge(const Body *body, const Part *part, i64 middle, bool upper)
{
    i64 most = upper ? part->count - middle - 1 : middle, dirty = -1, fine = 0;
    for (i64 jump = 1; fine < most; jump *= 2) {
        if (clean_between(body, part, upper ? middle : fine, upper ? part->count - fine : middle + 1))
            break;
        dirty = fine;
        fine = min(jump, most);
    }
    while (fine - dirty > 1) {
        i64 half = dirty + (fine - dirty) / 2;
        if (clean_between(body, part, upper ? middle : half, upper ? part->count - half : middle + 1))
            fine = half;
        else dirty = half;
    }
    return fine;
}

/* The inner range first, which needs nothing under way; then what is left at either end. */
static void split(const Body *body, i64 step)
{
    if (!pending || ranges.count != 4 || combining || kind == WIDE) return;
    Part part = {.step = step};
    memcpy(part.range, ranges.rows, sizeof part.range);
    part.count = (part.range[1] - part.range[0] + step - 1) / step;
    i64 middle = part.count / 2;
    if (part.count < 3 || !clean_between(body, &part, middle, middle + 1)) return;
    i64 low = edge(body, &part, middle, false), high = part.count - edge(body, &part, middle, true);
    RESERVE(ranges, 12);
    piece_of(&part, low, high, ranges.rows);
    interior = 1;
    i64 ends[2][2] = {{0, low}, {high, part.count}};
    for (i64 k = 0; k < 2; k++) {
        if (ends[k][0] == ends[k][1]) continue;
        piece_of(&part, ends[k][0], ends[k][1], ranges.rows + ranges.count);
        ranges.count += 4;
    }
}
