// Every body's pull is a sum over all bodies; all are kicked before any drifts.
#include <tgmath.h>

void kernel_n_body(int64_t tsteps, T dt, T softening, const T mass[restrict N],
                   T position[restrict N][3], T velocity[restrict N][3]) {
#pragma omp parallel
  for (int64_t t = 0; t < tsteps; t++) {
#pragma omp for schedule(static)
    for (long i = 0; i < N; i++) {
      T x = 0, y = 0, z = 0;
#pragma omp simd reduction(+ : x, y, z)
      for (long j = 0; j < N; j++) {
        const T dx = position[j][0] - position[i][0];
        const T dy = position[j][1] - position[i][1];
        const T dz = position[j][2] - position[i][2];
        const T r2 = dx * dx + dy * dy + dz * dz + softening;
        const T strength = mass[j] / (r2 * sqrt(r2));
        x += strength * dx;
        y += strength * dy;
        z += strength * dz;
      }
      velocity[i][0] += dt * x;
      velocity[i][1] += dt * y;
      velocity[i][2] += dt * z;
    }
#pragma omp for schedule(static)
    for (long i = 0; i < N; i++)
      for (long d = 0; d < 3; d++)
        position[i][d] += dt * velocity[i][d];
  }
}
