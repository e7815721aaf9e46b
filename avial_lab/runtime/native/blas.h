/* Products of matrices: where a program's calls of a BLAS go.
 *
 * C += alpha * A * B -> a call of cblas_dgemm or cblas_sgemm. The engine finds a library that has
 * them and stores its functions here before each run, as it does with libomp's (threads.h): a
 * program is loaded without any BLAS, and nobody else in the process gets to see the library's
 * symbols.
 */
#ifndef AVIAL_BLAS_H
#define AVIAL_BLAS_H

#include <stdint.h>

#include "linkage.h"

/* Set by the engine: addresses of the library's functions, and the bits of its integers, 32 or
 * 64. */
EXPORTED extern int64_t avial_blas_dgemm, avial_blas_sgemm, avial_blas_bits;

/* Called by programs, for i < m, j < n, p < k:
 *
 * c[i * c_row + j] += alpha * sum over p of a[i * a_row + p * a_term] * b[p * b_term + j *
 * b_column]
 *
 * Strides are in elements. What a BLAS would compute otherwise than this says, or refuse, is
 * computed in plain loops: with alpha = 0 it would not look at A and B, whose NaN and infinities
 * count; an alpha that is not finite would meet sums in place of terms; and matrices whose rows and
 * columns are both apart have no form there. */
HIDDEN void avial_gemm_f64(int64_t m, int64_t n, int64_t k, double alpha, const double *a,
                           int64_t a_row, int64_t a_term, const double *b, int64_t b_term,
                           int64_t b_column, double *c, int64_t c_row);
HIDDEN void avial_gemm_f32(int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                           int64_t a_row, int64_t a_term, const float *b, int64_t b_term,
                           int64_t b_column, float *c, int64_t c_row);

#endif
