// Numbers that carry a bound on their own rounding error: kernels/rounding.py in C++, so that a
// peer's text, compiled with T = Rounded, says how far two correct runs may be apart.
//
// A running error analysis (Higham, Accuracy and Stability of Numerical Algorithms, section 3.3);
// a chain of additions has the bound k · eps · Σ|terms|, which holds for every order of its terms.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>

struct Rounded {
  double value, magnitude, additions, inherited;

  Rounded() = default;
  template <class Number>
  Rounded(Number number)
      : value(static_cast<Element>(number)), magnitude(std::fabs(value)), additions(0),
        inherited(0) {}

  static Rounded of(double value, double inherited) {
    Rounded made;
    made.value = value;
    made.magnitude = std::fabs(value);
    made.additions = 0;
    made.inherited = inherited;
    return made;
  }

  double error() const {
    return additions > 0 ? inherited + additions * EPS * magnitude : inherited;
  }

  Rounded &operator+=(Rounded other) { return *this = *this + other; }
  Rounded &operator-=(Rounded other) { return *this = *this - other; }
  Rounded &operator*=(Rounded other) { return *this = *this * other; }
  Rounded &operator/=(Rounded other) { return *this = *this / other; }

  static constexpr double EPS = std::numeric_limits<Element>::epsilon();

  // A result with a rounding of its own on top of what its operands bring.
  static Rounded leaf(double value, double error, double roundings = 1) {
    return of(value, error + roundings * EPS * std::fabs(value));
  }

  friend Rounded operator-(Rounded x) {
    x.value = -x.value;
    return x;
  }
  friend Rounded operator+(Rounded x, Rounded y) {
    x.value += y.value;
    x.magnitude += y.magnitude;
    x.additions += y.additions + 1;
    x.inherited += y.inherited;
    return x;
  }
  friend Rounded operator-(Rounded x, Rounded y) { return x + -y; }
  friend Rounded operator*(Rounded x, Rounded y) {
    const double ex = x.error(), ey = y.error();
    return leaf(x.value * y.value,
                std::fabs(x.value) * ey + std::fabs(y.value) * ex + ex * ey);
  }
  friend Rounded operator/(Rounded x, Rounded y) {
    const double ex = x.error(), ey = y.error(), quotient = x.value / y.value;
    const double room = std::fabs(y.value) - ey;
    return leaf(quotient, room > 0 ? (ex + std::fabs(quotient) * ey) / room : HUGE_VAL);
  }
  friend bool operator<(Rounded x, Rounded y) { return x.value < y.value; }
  friend bool operator>(Rounded x, Rounded y) { return x.value > y.value; }
  friend bool operator<=(Rounded x, Rounded y) { return x.value <= y.value; }
  friend bool operator>=(Rounded x, Rounded y) { return x.value >= y.value; }
  friend bool operator==(Rounded x, Rounded y) { return x.value == y.value; }

  friend Rounded sqrt(Rounded x) {
    const double error = x.error(), root = std::sqrt(x.value);
    // |√a - √b| is at most |a - b| / √a and at most √|a - b|
    return leaf(root, std::fmin(error / root, std::sqrt(error)));
  }
};

// Which of the two it is may differ between two runs: the error is the larger one.
static inline Rounded larger(Rounded x, Rounded y) {
  return Rounded::of(std::fmax(x.value, y.value), std::fmax(x.error(), y.error()));
}
#define LARGER(x, y) larger(x, y)

// An address that is an array of whatever its parameter wants.
struct Address {
  void *address;
  template <class Target> operator Target *() const { return static_cast<Target *>(address); }
};
