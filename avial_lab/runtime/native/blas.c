/* Calls of a BLAS, or loops where it has no form for the matrices. */
#include "blas.h"

#include <math.h>

enum { ROWS = 101, PLAIN = 111, TURNED = 112 }; /* cblas.h: row-major, no transpose, transpose */

int64_t avial_blas_dgemm, avial_blas_sgemm, avial_blas_bits;

/* A matrix as a BLAS takes it; `leading` is 0 where it cannot. */
typedef struct {
    int form;
    int64_t leading;
} layout_t;

/* Of elements that are `row` apart from row to row and `column` from column to column; of a single
 * row or column nobody asks how far it is to the next. */
static layout_t layout(int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    int64_t plain = rows == 1 ? columns : row, turned = columns == 1 ? rows : column;
    if ((column == 1 || columns == 1) && plain >= columns) return (layout_t){PLAIN, plain};
    if ((row == 1 || rows == 1) && turned >= rows) return (layout_t){TURNED, turned};
    return (layout_t){PLAIN, 0};
}

/* Whether the library's integers hold it. */
static int fits(int64_t value) { return avial_blas_bits == 64 || value <= INT32_MAX; }

/* In plain loops, whatever the strides are. */
#define PLAIN_PRODUCT(NAME, T)                                                            \
    static void NAME(int64_t m, int64_t n, int64_t k, T alpha, const T *a, int64_t a_row, \
                     int64_t a_term, const T *b, int64_t b_term, int64_t b_column, T *c,  \
                     int64_t c_row)                                                       \
    {                                                                                     \
        for (int64_t i = 0; i < m; i++)                                                   \
            for (int64_t p = 0; p < k; p++)                                               \
                for (int64_t j = 0; j < n; j++)                                           \
                    c[i * c_row + j] +=                                                   \
                        alpha * a[i * a_row + p * a_term] * b[p * b_term + j * b_column]; \
    }

/* cblas_dgemm or cblas_sgemm, of a library whose integers are of type INT. */
#define LIBRARY_PRODUCT(T, INT) \
    (void (*)(int, int, int, INT, INT, INT, T, const T *, INT, const T *, INT, T, T *, INT))

#define PRODUCT(NAME, T, LIBRARYS, PLAIN_LOOPS)                                                    \
    HIDDEN void NAME(int64_t m, int64_t n, int64_t k, T alpha, const T *a, int64_t a_row,          \
                     int64_t a_term, const T *b, int64_t b_term, int64_t b_column, T *c,           \
                     int64_t c_row)                                                                \
    {                                                                                              \
        if (m <= 0 || n <= 0 || k <= 0) return;                                                    \
        layout_t left = layout(m, k, a_row, a_term), right = layout(k, n, b_term, b_column);       \
        int64_t lda = left.leading, ldb = right.leading, ldc = m == 1 ? n : c_row;                 \
        int has_form = lda && ldb && ldc >= n && alpha != 0 && isfinite(alpha);                    \
        if (!has_form || !fits(lda) || !fits(ldb) || !fits(ldc) || !fits(m) || !fits(n) ||         \
            !fits(k))                                                                              \
            PLAIN_LOOPS(m, n, k, alpha, a, a_row, a_term, b, b_term, b_column, c, c_row);          \
        else if (avial_blas_bits == 64)                                                            \
            (LIBRARY_PRODUCT(T, int64_t) LIBRARYS)(ROWS, left.form, right.form, m, n, k, alpha, a, \
                                                   lda, b, ldb, 1, c, ldc);                        \
        else                                                                                       \
            (LIBRARY_PRODUCT(T, int32_t) LIBRARYS)(ROWS, left.form, right.form, (int32_t)m,        \
                                                   (int32_t)n, (int32_t)k, alpha, a, (int32_t)lda, \
                                                   b, (int32_t)ldb, 1, c, (int32_t)ldc);           \
    }

PLAIN_PRODUCT(plain_f64, double)
PLAIN_PRODUCT(plain_f32, float)
PRODUCT(avial_gemm_f64, double, avial_blas_dgemm, plain_f64)
PRODUCT(avial_gemm_f32, float, avial_blas_sgemm, plain_f32)
