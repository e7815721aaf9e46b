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

static char *copy_out(char *to, const Array *a, char *memory, const i64 *box)
{
    Stretches s = stretches(a, memory, box);
    for (i64 k = 0, n = stretch_count(&s); k < n; k++, to += s.run)
        memcpy(to, stretch(&s, k), (size_t)s.run);
    return to;
}

static const char *copy_in(const char *from, const Array *a, char *memory, const i64 *box)
{
    Stretches s = stretches(a, memory, box);
    for (i64 k = 0, n = stretch_count(&s); k < n; k++, from += s.run)
        memcpy(stretch(&s, k), from, (size_t)s.run);
    return from;
}

static void copy_between(const Array *a, char *to, char *from, const i64 *box)
{
    Stretches source = stretches(a, from, box), dest = stretches(a, to, box);
    for (i64 k = 0, n = stretch_count(&source); k < n; k++)
        memcpy(stretch(&dest, k), stretch(&source, k), (size_t)source.run);
}
