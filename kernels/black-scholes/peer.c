// The closed formula, option by option, in the element type throughout.
#include <tgmath.h>

void kernel_black_scholes(T rate, T volatility, const T price[restrict N],
                          const T strike[restrict N], const T years[restrict N],
                          T call[restrict N], T put[restrict N]) {
  const T drift = rate + volatility * volatility / 2, root_half = (T)0.70710678118654752440;
#pragma omp parallel for simd schedule(static)
  for (long i = 0; i < N; i++) {
    const T spread = volatility * sqrt(years[i]);
    const T d1 = (log(price[i] / strike[i]) + drift * years[i]) / spread;
    const T due = strike[i] * exp(-rate * years[i]);
    const T first = (1 + erf(d1 * root_half)) / 2;
    const T second = (1 + erf((d1 - spread) * root_half)) / 2;
    const T value = price[i] * first - due * second;
    call[i] = value;
    put[i] = value + due - price[i];
  }
}
