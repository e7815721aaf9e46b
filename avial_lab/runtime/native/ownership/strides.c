#include "strides.h"

#include <string.h>

INTERNAL StridedBox strided_box(const Array *a, char *memory, const i64 *box)
{
    StridedBox s = {.run_bytes = a->itemsize};
    i64 nd = a->nd, step = a->itemsize, at = 0;
    bool whole = true;
    for (i64 d = nd - 1; d >= 0; d--) {
        i64 length = box[nd + d] - box[d], extent = a->whole[nd + d];
        at += box[d] * step;
        if (whole) s.run_bytes *= length;
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

INTERNAL char *run_address(const StridedBox *s, i64 number)
{
    char *at = s->memory;
    for (i64 d = 0; d < s->dims; d++) {
        at += number % s->count[d] * s->step[d];
        number /= s->count[d];
    }
    return at;
}

INTERNAL i64 run_count(const StridedBox *s)
{
    i64 count = 1;
    for (i64 d = 0; d < s->dims; d++) count *= s->count[d];
    return count;
}

INTERNAL void copy_runs(char *to, i64 to_step, const char *from, i64 from_step, i64 count,
                        i64 run_bytes)
{
/* Of single elements, as in a column, the size is a constant: a load and a store, no call. */
#define COPY_RUNS_OF(size)                                                                        \
    case size:                                                                                    \
        for (i64 k = 0; k < count; k++, to += to_step, from += from_step) memcpy(to, from, size); \
        return;
    switch (run_bytes) {
        COPY_RUNS_OF(4)
        COPY_RUNS_OF(8)
        COPY_RUNS_OF(16)
    }
#undef COPY_RUNS_OF
    for (i64 k = 0; k < count; k++, to += to_step, from += from_step)
        memcpy(to, from, (size_t)run_bytes);
}

INTERNAL i64 evenly_spaced(const StridedBox *s, i64 number)
{
    return s->dims ? s->count[0] - number % s->count[0] : 1;
}

INTERNAL char *pack_box(char *to, const Array *a, char *memory, const i64 *box)
{
    StridedBox s = strided_box(a, memory, box);
    for (i64 k = 0, n = run_count(&s), count; k < n; k += count, to += count * s.run_bytes) {
        count = evenly_spaced(&s, k);
        copy_runs(to, s.run_bytes, run_address(&s, k), s.step[0], count, s.run_bytes);
    }
    return to;
}

INTERNAL const char *unpack_box(const char *from, const Array *a, char *memory, const i64 *box)
{
    StridedBox s = strided_box(a, memory, box);
    for (i64 k = 0, n = run_count(&s), count; k < n; k += count, from += count * s.run_bytes) {
        count = evenly_spaced(&s, k);
        copy_runs(run_address(&s, k), s.step[0], from, s.run_bytes, count, s.run_bytes);
    }
    return from;
}

INTERNAL void copy_box(const Array *a, char *to, char *from, const i64 *box)
{
    StridedBox source = strided_box(a, from, box), dest = strided_box(a, to, box);
    for (i64 k = 0, n = run_count(&source), count; k < n; k += count) {
        count = evenly_spaced(&source, k);
        i64 step = source.step[0];
        copy_runs(run_address(&dest, k), step, run_address(&source, k), step, count,
                  source.run_bytes);
    }
}
