#include "reductions.h"

#include <math.h>
#include <string.h>

#include "pieces.h"
#include "strides.h"

/* Codes ---------------------------------------------------------------------------------------- */

static enum ElementCode element_of(i64 operation) { return operation & ((1 << ELEMENT_BITS) - 1); }

INTERNAL enum Reduction reduction_of(i64 operation)
{
    return operation >> ELEMENT_BITS & ((1 << (KEY_SHIFT - ELEMENT_BITS)) - 1);
}

INTERNAL bool is_key(i64 operation)
{
    enum Reduction r = reduction_of(operation);
    return r >= REDUCTION_ARGMIN && r <= REDUCTION_UNSIGNED_ARGMAX;
}

INTERNAL bool is_payload(i64 operation) { return reduction_of(operation) == REDUCTION_PAYLOAD; }

INTERNAL i64 key_array_of(i64 operation) { return (operation >> KEY_SHIFT) - 1; }

static bool has_arithmetic(enum ElementCode element)
{
    return element <= ELEMENT_I64 || element == ELEMENT_F32 || element == ELEMENT_F64;
}

/* By the type: integers have no NaN, floats neither bits nor no sign, and of
 * one bit there is no first extreme to look for. */
INTERNAL bool can_combine(i64 operation)
{
    enum Reduction r = reduction_of(operation);
    enum ElementCode element = element_of(operation);
    bool is_float = element > ELEMENT_I64;
    if (is_payload(operation))
        return key_array_of(operation) >= 0 && key_array_of(operation) < run.array_count;
    if (operation < 0 || operation >> KEY_SHIFT || !has_arithmetic(element)) return false;
    if (is_key(operation))
        return element != ELEMENT_I1 && !(is_float && r >= REDUCTION_UNSIGNED_ARGMIN);
    if (is_float)
        return r < REDUCTION_AND || r == REDUCTION_MINIMUM_NUMBER || r == REDUCTION_MAXIMUM_NUMBER;
    return r <= REDUCTION_UNSIGNED_MAXIMUM;
}

/* Arithmetic ----------------------------------------------------------------------------------- */

/* MLIR's minimumf and maximumf: NaN wins, and -0 lies below +0. */
#define MINIMUM(x, y) (isnan(x) ? x : isnan(y) ? y : x < y || (x == y && signbit(x)) ? x : y)
#define MAXIMUM(x, y) (isnan(x) ? x : isnan(y) ? y : x > y || (x == y && !signbit(x)) ? x : y)

/* A case of the switches below: `x` becomes `expression` of it and `y`, for each of the
 * elements. */
#define COMBINE(reduction, expression)                   \
    case reduction:                                      \
        for (i64 k = 0; k < n; k++) {                    \
            x = a[k];                                    \
            memcpy(&y, b + k * (i64)sizeof y, sizeof y); \
            a[k] = (expression);                         \
        }                                                \
        break;

/* Sums and products wrap around, as in MLIR: of type U, or of 64 bits where U is promoted. */
#define COMBINE_INTEGERS(name, T, U)                                        \
    static void name(enum Reduction r, void *into, const void *from, i64 n) \
    {                                                                       \
        T *a = into, x, y;                                                  \
        const char *b = from;                                               \
        switch (r) {                                                        \
            COMBINE(REDUCTION_SUM, (T)((U)x + (U)y))                        \
            COMBINE(REDUCTION_PRODUCT, (T)((u64)(U)x * (u64)(U)y))          \
            COMBINE(REDUCTION_MINIMUM, x < y ? x : y)                       \
            COMBINE(REDUCTION_MAXIMUM, x > y ? x : y)                       \
            COMBINE(REDUCTION_AND, x & y)                                   \
            COMBINE(REDUCTION_OR, x | y)                                    \
            COMBINE(REDUCTION_XOR, x ^ y)                                   \
            COMBINE(REDUCTION_UNSIGNED_MINIMUM, (U)x < (U)y ? x : y)        \
            COMBINE(REDUCTION_UNSIGNED_MAXIMUM, (U)x > (U)y ? x : y)        \
        default: break; /* `can_combine` */                                 \
        }                                                                   \
    }

#define COMBINE_FLOATS(name, T)                                                            \
    static void name(enum Reduction r, void *into, const void *from, i64 n)                \
    {                                                                                      \
        T *a = into, x, y;                                                                 \
        const char *b = from;                                                              \
        switch (r) {                                                                       \
            COMBINE(REDUCTION_SUM, x + y)                                                  \
            COMBINE(REDUCTION_PRODUCT, x * y)                                              \
            COMBINE(REDUCTION_MINIMUM, MINIMUM(x, y))                                      \
            COMBINE(REDUCTION_MAXIMUM, MAXIMUM(x, y))                                      \
            COMBINE(REDUCTION_MINIMUM_NUMBER, isnan(x) ? y : isnan(y) ? x : MINIMUM(x, y)) \
            COMBINE(REDUCTION_MAXIMUM_NUMBER, isnan(x) ? y : isnan(y) ? x : MAXIMUM(x, y)) \
        default: break;                                                                    \
        }                                                                                  \
    }

COMBINE_INTEGERS(combine_i8, int8_t, uint8_t)
COMBINE_INTEGERS(combine_i16, int16_t, uint16_t)
COMBINE_INTEGERS(combine_i32, int32_t, uint32_t)
COMBINE_INTEGERS(combine_i64, int64_t, uint64_t)
COMBINE_FLOATS(combine_f32, float)
COMBINE_FLOATS(combine_f64, double)

/* What a reduction of bits is on bytes that are 0 or 1: a sum is xor and a product and; a set bit
 * is -1 for signed comparisons. */
static const enum Reduction REDUCTION_OF_BITS[] = {
    [REDUCTION_SUM] = REDUCTION_XOR,
    [REDUCTION_PRODUCT] = REDUCTION_AND,
    [REDUCTION_MINIMUM] = REDUCTION_OR,
    [REDUCTION_MAXIMUM] = REDUCTION_AND,
    [REDUCTION_AND] = REDUCTION_AND,
    [REDUCTION_OR] = REDUCTION_OR,
    [REDUCTION_XOR] = REDUCTION_XOR,
    [REDUCTION_UNSIGNED_MINIMUM] = REDUCTION_AND,
    [REDUCTION_UNSIGNED_MAXIMUM] = REDUCTION_OR,
};

INTERNAL void combine_elements(i64 operation, char *into, const char *from, i64 n)
{
    enum Reduction r = reduction_of(operation);
    switch (element_of(operation)) {
    case ELEMENT_I1: combine_i8(REDUCTION_OF_BITS[r], into, from, n); return;
    case ELEMENT_I8: combine_i8(r, into, from, n); return;
    case ELEMENT_I16: combine_i16(r, into, from, n); return;
    case ELEMENT_I32: combine_i32(r, into, from, n); return;
    case ELEMENT_I64: combine_i64(r, into, from, n); return;
    case ELEMENT_F32: combine_f32(r, into, from, n); return;
    case ELEMENT_F64: combine_f64(r, into, from, n); return;
    default: return; /* `can_combine` */
    }
}

/* Identities ----------------------------------------------------------------------------------- */

/* A key starts like the plain minimum or maximum. */
static enum Reduction without_place(enum Reduction r)
{
    switch (r) {
    case REDUCTION_ARGMIN: return REDUCTION_MINIMUM;
    case REDUCTION_ARGMAX: return REDUCTION_MAXIMUM;
    case REDUCTION_UNSIGNED_ARGMIN: return REDUCTION_UNSIGNED_MINIMUM;
    case REDUCTION_UNSIGNED_ARGMAX: return REDUCTION_UNSIGNED_MAXIMUM;
    default: return r;
    }
}

static double float_identity(enum Reduction r)
{
    switch (r) {
    case REDUCTION_SUM: return -0.0; /* 0 + -0 is 0 */
    case REDUCTION_PRODUCT: return 1;
    case REDUCTION_MINIMUM: return INFINITY;
    case REDUCTION_MAXIMUM: return -INFINITY;
    default: return NAN; /* it loses against numbers */
    }
}

/* In the lowest `bits` bits. */
static u64 integer_identity(enum Reduction r, i64 bits)
{
    u64 ones = bits == 64 ? ~(u64)0 : ((u64)1 << bits) - 1, top = (u64)1 << (bits - 1);
    switch (r) {
    case REDUCTION_PRODUCT: return 1;
    case REDUCTION_MINIMUM: return ones ^ top;
    case REDUCTION_MAXIMUM: return top;
    case REDUCTION_AND:
    case REDUCTION_UNSIGNED_MINIMUM: return ones;
    default: return 0;
    }
}

static void store_identity(i64 operation, char *element)
{
    enum Reduction r = without_place(reduction_of(operation));
    enum ElementCode type = element_of(operation);
    if (type == ELEMENT_F32) memcpy(element, &(float){(float)float_identity(r)}, 4);
    if (type == ELEMENT_F64) memcpy(element, &(double){float_identity(r)}, 8);
    if (type > ELEMENT_I64) return;
    i64 bits = type == ELEMENT_I1 ? 1 : 8 << (type - ELEMENT_I8);
    u64 value = integer_identity(r, bits);
    memcpy(element, &value, (size_t)max(bits / 8, 1)); /* little-endian, as every supported host */
}

INTERNAL void fill_identity(const Array *a, char *memory, const i64 *box)
{
    char element[8] = {0};
    StridedBox s = strided_box(a, memory, box);
    i64 runs = run_count(&s);
    if (is_payload(a->operation)) { /* nobody looks at it before the key is found */
        for (i64 k = 0; k < runs; k++) memset(run_address(&s, k), 0, (size_t)s.run_bytes);
        return;
    }
    store_identity(a->operation, element);
    for (i64 k = 0; k < runs; k++)
        for (i64 at = 0; at < s.run_bytes; at += a->itemsize)
            memcpy(run_address(&s, k) + at, element, (size_t)a->itemsize);
}

/* Keys and payloads ---------------------------------------------------------------------------- */

/* better[k] = whether from[k] is strictly less than old[k], or greater: no NaN, nor what is equal.
 * Neither of the two need be aligned. */
#define FIND_BETTER(name, T)                                                             \
    static void name(bool least, const char *old, const char *from, i64 n, bool *better) \
    {                                                                                    \
        for (i64 k = 0; k < n; k++) {                                                    \
            T x, y;                                                                      \
            memcpy(&x, old + k * (i64)sizeof x, sizeof x);                               \
            memcpy(&y, from + k * (i64)sizeof y, sizeof y);                              \
            better[k] = least ? y < x : y > x;                                           \
        }                                                                                \
    }

FIND_BETTER(better_i8, int8_t)
FIND_BETTER(better_i16, int16_t)
FIND_BETTER(better_i32, int32_t)
FIND_BETTER(better_i64, int64_t)
FIND_BETTER(better_u8, uint8_t)
FIND_BETTER(better_u16, uint16_t)
FIND_BETTER(better_u32, uint32_t)
FIND_BETTER(better_u64, uint64_t)
FIND_BETTER(better_f32, float)
FIND_BETTER(better_f64, double)

static void find_better(i64 operation, const char *old, const char *from, i64 n, bool *better)
{
    enum Reduction r = reduction_of(operation);
    bool least = r == REDUCTION_ARGMIN || r == REDUCTION_UNSIGNED_ARGMIN;
    bool has_sign = r == REDUCTION_ARGMIN || r == REDUCTION_ARGMAX;
    switch (element_of(operation)) {
    case ELEMENT_I8: (has_sign ? better_i8 : better_u8)(least, old, from, n, better); return;
    case ELEMENT_I16: (has_sign ? better_i16 : better_u16)(least, old, from, n, better); return;
    case ELEMENT_I32: (has_sign ? better_i32 : better_u32)(least, old, from, n, better); return;
    case ELEMENT_I64: (has_sign ? better_i64 : better_u64)(least, old, from, n, better); return;
    case ELEMENT_F32: better_f32(least, old, from, n, better); return;
    case ELEMENT_F64: better_f64(least, old, from, n, better); return;
    default: return; /* `can_combine` */
    }
}

/* Of a key what is better, of a payload what belongs to that. */
static const char *accumulate_selected(const Array *a, const i64 *box, const char *from)
{
    StridedBox s = strided_box(a, a->memory, box);
    i64 runs = run_count(&s), elements = s.run_bytes / a->itemsize; /* of a run */
    if (is_key(a->operation)) {
        RESERVE(scratch.replaced, runs * elements);
        scratch.replaced.count = runs * elements;
        bool *better = scratch.replaced.rows;
        for (i64 k = 0; k < runs; k++)
            find_better(a->operation, run_address(&s, k), from + k * s.run_bytes, elements,
                        better + k * elements);
    }
    const bool *replaced = scratch.replaced.rows;
    bool all_alike = scratch.replaced.count == 1; /* a payload of several elements, a key of one */
    for (i64 k = 0, at = 0; k < runs; k++)
        for (i64 j = 0; j < elements; j++, at++, from += a->itemsize)
            if (replaced[all_alike ? 0 : at])
                memcpy(run_address(&s, k) + j * a->itemsize, from, (size_t)a->itemsize);
    return from;
}

INTERNAL const char *accumulate(const Array *a, const i64 *box, const char *from, bool first)
{
    if (first) return unpack_box(from, a, a->memory, box);
    if (is_key(a->operation) || is_payload(a->operation)) return accumulate_selected(a, box, from);
    StridedBox s = strided_box(a, a->memory, box);
    for (i64 k = 0, runs = run_count(&s); k < runs; k++, from += s.run_bytes)
        combine_elements(a->operation, run_address(&s, k), from, s.run_bytes / a->itemsize);
    return from;
}
