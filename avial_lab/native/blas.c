/* Products of matrices: where a program's calls of a BLAS go.
 *
 * C += alpha * A * B -> a call of cblas_dgemm or cblas_sgemm. The engine finds a library that has them and
 * stores its functions here before each run, as it does with libomp's (threads.c): a program is loaded
 * without any BLAS, and nobody else in the process gets to see the library's symbols.
 *
 * What a BLAS would compute otherwise than the program says, or refuse, is computed here in plain loops: with
 * alpha = 0 it would not look at A and B, whose NaN and infinities count; an alpha that is not finite
 * would meet sums in place of terms; and matrices whose rows and columns are both apart have no form there.
 */
#include <math.h>
#include <stdint.h>

#define SHOWN __attribute__((visibility("default")))
#define OWN __attribute__((visibility("hidden")))

enum { ROWS = 101, PLAIN = 111, TURNED = 112 }; /* cblas.h: row-major, no transpose, transpose */

SHOWN int64_t avial_blas_dgemm, avial_blas_sgemm;
SHOWN int64_t avial_blas_bits; /* of the library's integers: 32 or 64 */

/* A matrix as a BLAS takes it; no leading dimension where it cannot. */
typedef struct {
    int form;
    int64_t leading;
} layout_t;

/* Elements that are `row` apart from row to row and `column` from column to column; of a single row or
   column nobody asks how far it is to the next. */
static layout_t layout(int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    int64_t plain = rows == 1 ? columns : row, turned = columns == 1 ? rows : column;
    if ((column == 1 || columns == 1) && plain >= columns)
        return (layout_t){PLAIN, plain};
    if ((row == 1 || rows == 1) && turned >= rows)
        return (layout_t){TURNED, turned};
    return (layout_t){PLAIN, 0};
}

static int fits(int64_t value)
{
    return avial_blas_bits == 64 || value <= INT32_MAX;
}

/* c[i * c_row + j] += alpha * sum over p of a[i * a_row + p * a_term] * b[p * b_term + j * b_column] */
#define GEMM(NAME, T, LIBRARYS)                                                                              \
    OWN void NAME(int64_t m, int64_t n, int64_t k, T alpha, const T *a, int64_t a_row, int64_t a_term,       \
                  const T *b, int64_t b_term, int64_t b_column, T *c, int64_t c_row)                         \
    {                                                                                                        \
        if (m <= 0 || n <= 0 || k <= 0)                                                                      \
            return;                                                                                          \
        layout_t left = layout(m, k, a_row, a_term), right = layout(k, n, b_term, b_column);                 \
        int64_t below = m == 1 ? n : c_row;                                                                  \
        int called = left.leading && right.leading && below >= n && alpha != 0 && isfinite(alpha) &&         \
                     fits(left.leading) && fits(right.leading) && fits(below) && fits(m) && fits(n) && fits(k); \
        if (!called) {                                                                                       \
            for (int64_t i = 0; i < m; i++)                                                                  \
                for (int64_t p = 0; p < k; p++)                                                              \
                    for (int64_t j = 0; j < n; j++)                                                          \
                        c[i * c_row + j] += alpha * a[i * a_row + p * a_term] * b[p * b_term + j * b_column]; \
        } else if (avial_blas_bits == 64) {                                                                  \
            ((void (*)(int, int, int, int64_t, int64_t, int64_t, T, const T *, int64_t, const T *, int64_t,  \
                       T, T *, int64_t))LIBRARYS)(ROWS, left.form, right.form, m, n, k, alpha, a,            \
                                                  left.leading, b, right.leading, 1, c, below);              \
        } else {                                                                                             \
            ((void (*)(int, int, int, int32_t, int32_t, int32_t, T, const T *, int32_t, const T *, int32_t,  \
                       T, T *, int32_t))LIBRARYS)(ROWS, left.form, right.form, (int32_t)m, (int32_t)n,       \
                                                  (int32_t)k, alpha, a, (int32_t)left.leading, b,            \
                                                  (int32_t)right.leading, 1, c, (int32_t)below);             \
        }                                                                                                    \
    }

GEMM(avial_gemm_f64, double, avial_blas_dgemm)
GEMM(avial_gemm_f32, float, avial_blas_sgemm)
