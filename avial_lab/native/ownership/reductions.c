/* Operations that partial results are combined with: those there are, their identities, arithmetic. */

static i64 kind_of(i64 op) { return op >> 4 & 0xfff; }
static i64 leader_of(i64 op) { return (op >> 16) - 1; }
static bool leads(i64 op) { return kind_of(op) >= ARGMIN && kind_of(op) < COMPANION; }
static bool follows(i64 op) { return kind_of(op) == COMPANION; }

static bool can_combine(i64 op)
{
    static const bool of_type[16] = {[0] = 1, [1] = 1, [2] = 1, [3] = 1, [4] = 1, [7] = 1, [8] = 1};
    bool real = (op & 15) > 4;
    i64 what = kind_of(op);
    if (follows(op)) return leader_of(op) >= 0 && leader_of(op) < narrays;
    if (op < 0 || op >> 16 || !of_type[op & 15]) return false;
    if (leads(op)) return op & 15 && !(real && what >= ARGMIN_UNSIGNED);
    return what <= 10 && !(real && what >= 4 && what <= 8) && (real || what < 9);
}

/* MLIR's minimumf and maximumf: NaN wins, and -0 lies below +0. */
#define MINIMUM(T, x, y) (isnan(x) ? x : isnan(y) ? y : x < y || (x == y && signbit(x)) ? x : y)
#define MAXIMUM(T, x, y) (isnan(x) ? x : isnan(y) ? y : x > y || (x == y && !signbit(x)) ? x : y)

/* What came in a message need not be aligned. */
#define EACH(expression)                                \
    for (i64 k = 0; k < n; k++) {                       \
        x = a[k];                                       \
        memcpy(&y, b + k * (i64)sizeof y, sizeof y);    \
        a[k] = (expression);                            \
    }                                                   \
    break

#define INTEGERS(name, T, U)                                                    \
    static void name(i64 op, void *into, const void *from, i64 n)               \
    {                                                                           \
        T *a = into, x, y;                                                      \
        const char *b = from;                                                   \
        switch (op) {                                                           \
        case 0: EACH((T)((U)x + (U)y));                                         \
        case 1: EACH((T)((u64)(U)x * (u64)(U)y));                               \
        case 2: EACH(x < y ? x : y);                                            \
        case 3: EACH(x > y ? x : y);                                            \
        case 4: EACH(x & y);                                                    \
        case 5: EACH(x | y);                                                    \
        case 6: EACH(x ^ y);                                                    \
        case 7: EACH((U)x < (U)y ? x : y);                                      \
        case 8: EACH((U)x > (U)y ? x : y);                                      \
        }                                                                       \
    }

#define REALS(name, T)                                                          \
    static void name(i64 op, void *into, const void *from, i64 n)               \
    {                                                                           \
        T *a = into, x, y;                                                      \
        const char *b = from;                                                   \
        switch (op) {                                                           \
        case 0: EACH(x + y);                                                    \
        case 1: EACH(x * y);                                                    \
        case 2: EACH(MINIMUM(T, x, y));                                         \
        case 3: EACH(MAXIMUM(T, x, y));                                         \
        case 9: EACH(isnan(x) ? y : isnan(y) ? x : MINIMUM(T, x, y));           \
        case 10: EACH(isnan(x) ? y : isnan(y) ? x : MAXIMUM(T, x, y));          \
        }                                                                       \
    }

INTEGERS(combine_i8, int8_t, uint8_t)
INTEGERS(combine_i16, int16_t, uint16_t)
INTEGERS(combine_i32, int32_t, uint32_t)
INTEGERS(combine_i64, int64_t, uint64_t)
REALS(combine_f32, float)
REALS(combine_f64, double)

/* Of one bit, sum is xor and product and; a set bit is -1 for signed comparisons. */
static const i64 OF_BITS[9] = {6, 4, 5, 4, 4, 5, 6, 4, 5};

/* `into` = `into` op `from`, n elements. */
static void combine_run(i64 op, char *into, const char *from, i64 n)
{
    i64 what = kind_of(op);
    switch (op & 15) {
    case 0: combine_i8(OF_BITS[what], into, from, n); return;
    case 1: combine_i8(what, into, from, n); return;
    case 2: combine_i16(what, into, from, n); return;
    case 3: combine_i32(what, into, from, n); return;
    case 4: combine_i64(what, into, from, n); return;
    case 7: combine_f32(what, into, from, n); return;
    case 8: combine_f64(what, into, from, n); return;
    }
}

/* Which of n partial results of a leader are strictly better than those there are: no NaN, nor what
 * is only as good. */
#define STRICTLY(T)                                                                  \
    for (i64 k = 0; k < n; k++) {                                                    \
        T x, y;                                                                      \
        memcpy(&x, old + k * (i64)sizeof(T), sizeof(T)); /* messages are unaligned */ \
        memcpy(&y, from + k * (i64)sizeof(T), sizeof(T));                            \
        wins[k] = least ? y < x : y > x;                                             \
    }                                                                                \
    return

static void strictly(i64 op, const char *old, const char *from, i64 n, bool *wins)
{
    i64 what = kind_of(op);
    bool least = what == ARGMIN || what == ARGMIN_UNSIGNED;
    switch ((op & 15) + (what >= ARGMIN_UNSIGNED ? 16 : 0)) {
    case 1: STRICTLY(int8_t);
    case 2: STRICTLY(int16_t);
    case 3: STRICTLY(int32_t);
    case 4: STRICTLY(int64_t);
    case 7: STRICTLY(float);
    case 8: STRICTLY(double);
    case 17: STRICTLY(uint8_t);
    case 18: STRICTLY(uint16_t);
    case 19: STRICTLY(uint32_t);
    case 20: STRICTLY(uint64_t);
    }
}

/* The element that leaves every other as it is: -0 for sums, since 0 + -0 is 0. */
static void identity(i64 op, char *element)
{
    static const double real[11] = {-0.0, 1, INFINITY, -INFINITY, 0, 0, 0, 0, 0, NAN, NAN};
    static const i64 order[4] = {2, 3, 7, 8}; /* a leader starts like the plain minimum or maximum */
    i64 what = leads(op) ? order[kind_of(op) - ARGMIN] : kind_of(op);
    i64 type = op & 15, bits = type ? 8 << (type - 1) : 1;
    if (type == 7) memcpy(element, &(float){(float)real[what]}, 4);
    if (type == 8) memcpy(element, &real[what], 8);
    if (type > 4) return;
    u64 ones = bits == 64 ? ~(u64)0 : ((u64)1 << bits) - 1, top = (u64)1 << (bits - 1);
    u64 value[9] = {0, 1, ones ^ top, top, ones, 0, 0, ones, 0};
    memcpy(element, &value[what], (size_t)max(bits / 8, 1)); /* little-endian, as every host of ours */
}

static void fill(const Array *a, char *memory, const i64 *box)
{
    char element[8];
    Stretches s = stretches(a, memory, box);
    if (follows(a->op)) { /* nobody looks at it before the leader is found */
        for (i64 k = 0, n = stretch_count(&s); k < n; k++) memset(stretch(&s, k), 0, (size_t)s.run);
        return;
    }
    identity(a->op, element);
    for (i64 k = 0, n = stretch_count(&s); k < n; k++)
        for (i64 at = 0; at < s.run; at += a->itemsize)
            memcpy(stretch(&s, k) + at, element, (size_t)a->itemsize);
}

/* Takes of a leader's partial result what is better, and of its companions' what belongs to that:
 * they come next. */
static const char *accumulate_better(const Array *a, const i64 *box, const char *from)
{
    Stretches s = stretches(a, a->memory, box);
    i64 run = s.run / a->itemsize;
    if (leads(a->op)) {
        RESERVE(better, volume(a->nd, box));
        better.count = volume(a->nd, box);
        for (i64 k = 0, n = stretch_count(&s); k < n; k++)
            strictly(a->op, stretch(&s, k), from + k * s.run, run, better.rows + k * run);
    }
    for (i64 k = 0, at = 0, n = stretch_count(&s); k < n; k++)
        for (i64 j = 0; j < run; j++, at++, from += a->itemsize)
            if (better.rows[better.count == 1 ? 0 : at])
                memcpy(stretch(&s, k) + j * a->itemsize, from, (size_t)a->itemsize);
    return from;
}

/* Combines a partial result with what is there, or takes it as it is. Returns past the partial. */
static const char *accumulate(const Array *a, const i64 *box, const char *from, bool first)
{
    if (first) return copy_in(from, a, a->memory, box);
    if (leads(a->op) || follows(a->op)) return accumulate_better(a, box, from);
    Stretches s = stretches(a, a->memory, box);
    for (i64 k = 0, n = stretch_count(&s); k < n; k++, from += s.run)
        combine_run(a->op, stretch(&s, k), from, s.run / a->itemsize);
    return from;
}
