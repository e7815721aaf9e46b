/* Boxes in memory: the stretches of bytes they are made of, copied out, in and across. */

/* The stretches of a box that are contiguous in memory: `run` bytes each. */
typedef struct { char *memory; i64 run, count[MAX_DIMS], step[MAX_DIMS], dims; } Stretches;

static Stretches stretches(const Array *a, char *memory, const i64 *box)
{
    Stretches s = {.run = a->itemsize};
    i64 nd = a->nd, step = a->itemsize, at = 0;
    bool whole = true;
    for (i64 d = nd - 1; d >= 0; d--) {
        i64 length = box[nd + d] - box[d], extent = a->whole[nd + d];
        at += box[d] * step;
        if (whole) s.run *= length;
        else {
            s.count[s.dims] = length;
            s.step[s.dims++] = step;
        }
        whole = whole && length == extent;
        step *= extent;
    }
    s.memory = memory + at;
    return s;
}

/* The address of the `number`-th stretch. */
static char *stretch(const Stretches *s, i64 number)
{
    char *at = s->memory;
    for (i64 d = 0; d < s->dims; d++) {
        at += number % s->count[d] * s->step[d];
        number /= s->count[d];
    }
    return at;
}

static i64 stretch_count(const Stretches *s)
{
    i64 count = 1;
    for (i64 d = 0; d < s->dims; d++) count *= s->count[d];
    return count;
}

/* `count` stretches of `run` bytes, each so far from the one before it. Of single elements, as in a
 * column, it is the compiler that knows how to copy them. */
static void copy_runs(char *to, i64 to_step, const char *from, i64 from_step, i64 count, i64 run)
{
#define OF(size)                                                                   \
    case size:                                                                     \
        for (i64 k = 0; k < count; k++, to += to_step, from += from_step) memcpy(to, from, size); \
        return;
    switch (run) {
        OF(4)
        OF(8)
        OF(16)
    }
#undef OF
    for (i64 k = 0; k < count; k++, to += to_step, from += from_step) memcpy(to, from, (size_t)run);
}

/* From the `number`-th stretch on: how many lie evenly apart. */
static i64 even(const Stretches *s, i64 number)
{
    return s->dims ? s->count[0] - number % s->count[0] : 1;
}

static char *copy_out(char *to, const Array *a, char *memory, const i64 *box)
{
    Stretches s = stretches(a, memory, box);
    for (i64 k = 0, n = stretch_count(&s), count; k < n; k += count, to += count * s.run) {
        count = even(&s, k);
        copy_runs(to, s.run, stretch(&s, k), s.step[0], count, s.run);
    }
    return to;
}

static const char *copy_in(const char *from, const Array *a, char *memory, const i64 *box)
{
    Stretches s = stretches(a, memory, box);
    for (i64 k = 0, n = stretch_count(&s), count; k < n; k += count, from += count * s.run) {
        count = even(&s, k);
        copy_runs(stretch(&s, k), s.step[0], from, s.run, count, s.run);
    }
    return from;
}

static void copy_between(const Array *a, char *to, char *from, const i64 *box)
{
    Stretches source = stretches(a, from, box), dest = stretches(a, to, box);
    for (i64 k = 0, n = stretch_count(&source), count; k < n; k += count) {
        count = even(&source, k);
        i64 step = source.step[0];
        copy_runs(stretch(&dest, k), step, stretch(&source, k), step, count, source.run);
    }
}
