"""C functions beside what a C compiler makes of the same text: the same bits."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import avial_lab
from avial_lab.compiler.frontends.c.functions import c_function
from avial_lab.core.errors import AvialError
from avial_lab.core.toolchain import find_tool
from tests.compiler.frontends.python.comparing import interpreted

STENCIL = """
#include <math.h>
#define SQUARE(x) ((x) * (x))
typedef double real;

/* A row that decays, in place. */
double decayed(int n, int m, int steps, real u[n][m], const real *restrict weights) {
  int i, t;
  double total = 0;
  for (t = 0; t < steps; t++)
    for (i = 1; i <= n - 2; ++i) {
      for (int j = m - 2; j > 0; j -= 1)
        u[i][j] = 0.25 * (u[i - 1][j] + u[i + 1][j]) + weights[j] * SQUARE(u[i][j]);
    }
  for (i = 0; i < n; i += 2) total += fabs(u[i][1]);
  if (total > 1e6) return -1;
  return sqrt(total);
}
"""

WHOLE = """
int whole(int n, const int a[], const int b[], unsigned c[], signed char d[], long e[]) {
  int i = 0, found = -1, last;
  for (i = 0; i < n; i++) {
    e[i] = a[i] / b[i] + 10 * (a[i] % b[i]) + a[i] / 3 - a[i] % 4;
    c[i] = c[i] * 2654435761u + (unsigned)a[i];
    d[i] = (signed char)(d[i] + a[i]);
    e[i] += (a[i] > b[i]) - (a[i] < b[i]) + (d[i] << 3) + (c[i] >> 5) + ~a[i] + !b[i];
  }
  last = i;
  while (last > 0) {
    last -= 1;
    if (a[last] == 0) continue;
    if (a[last] < 0 && b[last] > 0) { found = last; break; }
  }
  do { found += 2; } while (found < 3);
  return found * 1000 + (i == n ? 7 : 8) + (int)(2.9f * 3);
}
"""

NAMES = """
const double SCALE = 2.5;
static const int TURNS = 4;
double names(int n, const double a[n], int lambda) {
  int i = 7;
  double s = 0;
  { int i = 2; s += i; { double i = 0.5; s += i; } s += i; }
  for (int i = 0; i < n; i++) {
    double t[4];
    for (int k = 0; k < TURNS; k++) t[k] = a[i] * k;
    s += t[3];
  }
  for (int k = 0; k < n; k++) { double t[4]; for (int i = 0; i < 4; i++) t[i] = a[k]; s += t[1]; }
  for (int k = 0; k < n; k++) { float t = a[k]; s += t; }
  unsigned u = -1;
  unsigned char c = 300;
  s += (u > 5) + c + lambda + i + SCALE;
  do {
    for (int q = 0; q < 5; q++) { if (q == 1) continue; if (q == 3) break; s += q; }
    n--;
  } while (n > 0);
  return s;
}
"""

SINGLE = """
#include <math.h>
void single(int n, float x[n], double y[n], float scale) {
  float kept[16];
  double z, w;
  for (int i = 0; i < n; i++) {
    kept[i % 16] = x[i] * 2 + scale;
    z = w = kept[i % 16] / 3;
    x[i] = sqrtf(fmaxf(x[i], 0.5f)) + i;
    y[i] = 0.1 * x[i] + z - w * 0.5 + (i & 1 ? exp(-y[i]) : fmin(y[i], 2.0));
  }
}
"""

Given = tuple[Any, ...]


def stencil() -> Given:
    random = np.random.default_rng(1)
    return 7, 9, 3, random.random((7, 9)), random.random(9)


def whole() -> Given:
    a = np.array([7, -7, 7, -7, 0, 1, -1, 2**31 - 1, 5], np.int32)
    b = np.array([2, 2, -2, -2, 3, -5, 4, 2, 5], np.int32)
    return len(a), a, b, np.arange(9, dtype=np.uint32), np.arange(9, dtype=np.int8) * 14, a * 0 + 1


def single() -> Given:
    random = np.random.default_rng(2)
    return 20, random.random(20).astype(np.float32), random.random(20), 0.3


CASES = {
    "decayed": (STENCIL, stencil), "whole": (WHOLE, whole), "single": (SINGLE, single),
    "names": (NAMES, lambda: (3, np.array([0.5, 1.5, 2.5]), 11)),
}  # fmt: skip


def by_a_compiler(text: str, name: str, args: Given, folder: Path) -> Any:
    compiler = find_tool("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    (folder / "case.c").write_text(text)
    line = [str(compiler), "-O1", "-ffp-contract=off", "-fwrapv", "-shared", "-fPIC"]
    subprocess.run([*line, "case.c", "-o", "case.so", "-lm"], cwd=folder, check=True)
    function = ctypes.CDLL(str(folder / "case.so"))[name]
    head = re.search(rf"(\w+) {name}\(", text)
    assert head is not None
    function.restype = {"double": ctypes.c_double, "int": ctypes.c_int, "void": None}[head[1]]
    given = [
        arg.ctypes.data_as(ctypes.c_void_p) if isinstance(arg, np.ndarray)
        else ctypes.c_int(arg) if isinstance(arg, int) else ctypes.c_float(arg)
        for arg in args
    ]  # fmt: skip
    return function(*given)


@pytest.mark.parametrize("name", CASES)
def test_the_same_bits(name: str, tmp_path: Path) -> None:
    text, made = CASES[name]
    mine, theirs = made(), made()
    if name == "whole":
        mine, theirs = ((*each[:5], each[5].astype(np.int64)) for each in (mine, theirs))
    wanted = by_a_compiler(text, name, theirs, tmp_path)
    found = c_function(text, "case.c", name)
    names = [each.name for each in found.parameters]
    given = found.taken(dict(zip(names, mine, strict=True)))
    assert interpreted(found.function, *given.values()) == wanted
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("i", [0, 3])
def test_no_index_counts_from_the_end(i: int) -> None:
    text = "void f(int n, double a[n], int i) { a[i - 1] = 1; a[i] = 2; }"
    function = c_function(text, "f.c", "f").function
    with pytest.raises(IndexError):
        interpreted(function, 3, np.zeros(3), i)


def test_a_file_is_a_program(tmp_path: Path) -> None:
    (tmp_path / "sizes.h").write_text("#define TIMES 3.0\n")
    path = tmp_path / "scaled.c"
    path.write_text(
        '#include "sizes.h"\nvoid other(void) {}\n'
        "void scaled(int n, double a[N], double by) {\n"
        "  for (int i = 0; i < n; i++)\n    a[i] *= TIMES * by;\n}\n"
    )
    scaled = avial_lab.from_c(path, "scaled", define={"N": 8}, ranks=1)
    for _ in range(3):
        a = np.arange(8.0)
        assert scaled(8, a, 2) is None
        np.testing.assert_array_equal(a, np.arange(8.0) * 6)
    (report,) = scaled.explain().reports
    assert report.span is not None
    assert (report.span.cell, report.span.line) == ("scaled.c", 4)
    with pytest.raises(AvialError, match=r"'a' is float64 a\[8\] in C, and was given an array of"):
        scaled(8, np.zeros(9), 2)
    with pytest.raises(AvialError, match="'a' is an array in C"):
        scaled(8, 1.0, 2)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("*a = 1;", "numbers and elements of arrays are assigned to"),
        ("a[0] = foo(1);", "the function foo is not supported"),
        ("double *p = a;", "a pointer is not supported"),
        ("a[0][1] = 2;", "'a' has 1 dimensions, and 2 subscripts"),
        ("a[0] = x;", "'x' is not declared in the function"),
        ("a[0] = 1", "this is no C that is known here"),
        ("switch ((int)a[0]) { case 1: a[0] = 2; }", "'switch' is not supported"),
        ("for (;;) { if (a[0] > 1) continue; a[0] += 1; }", "continue in such a loop"),
    ],
)
def test_what_is_refused(body: str, words: str) -> None:
    with pytest.raises(AvialError, match=re.escape(words)) as caught:
        c_function(f"void f(double a[5]) {{ {body}\n}}", "f.c")
    span = caught.value.span
    assert span is not None
    assert span.cell == "f.c"
    assert span.line == (2 if "no C" in words else 1)
    assert span.column > 20 or span.line == 2


def test_which_function() -> None:
    text = "void one(void) {}\nvoid two(void) {}"
    with pytest.raises(AvialError, match=r"which function of a\.c is meant"):
        c_function(text, "a.c")
    with pytest.raises(AvialError, match="did you mean 'two'"):
        c_function(text, "a.c", "tow")


OTHERS = """
static double square(double x) { return x * x; }
static int clamp(int v, int lo, int hi) { if (v < lo) return lo; if (v > hi) return hi; return v; }
static double sum(int n, double a[n])
{ double t = 0; for (int i = 0; i < n; i++) t += a[i]; return t; }
static void scale(int n, double a[n], double s)
{ for (int i = 0; i < n; i++) a[i] = square(a[i]) * s; }
void kernel(int n, int m, double A[n][m], double out[n], int k[n]) {
  for (int i = 0; i < n; i++) {
    scale(m, A[i], 0.5);
    out[i] = square(A[i][0]) + sum(m, A[i]);
    k[i] = clamp(k[i], 2, 5) + clamp(2.9, 0, 9);
  }
}
"""


def test_functions_of_the_file_are_called() -> None:
    a, out, k = np.random.default_rng(3).random((6, 4)), np.zeros(6), np.arange(6, dtype=np.int32)
    scaled = (a * a) * 0.5
    wanted = [row[0] * row[0] + (((row[0] + row[1]) + row[2]) + row[3]) for row in scaled]
    interpreted(c_function(OTHERS, "k.c", "kernel").function, 6, 4, a, out, k)
    assert out.tolist() == wanted
    assert a.tolist() == scaled.tolist()
    assert k.tolist() == [4, 4, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("f(a);", "f takes 2 arguments, and is given 1"),
        ("f(a, a);", "is an array here"),
        ("a[0] = f(a, 1);", "f returns nothing"),
        ("f(b, 1);", "is given one of 1 of float32"),
        ("g(1);", "the function g is not supported"),
    ],
)
def test_calls_that_are_refused(call: str, words: str) -> None:
    text = (
        "static void f(double *x, int n) { x[0] = n; }\n"
        f"void k(double *a, float *b) {{ {call} }}\n"
    )
    with pytest.raises(AvialError, match=words):
        c_function(text, "k.c", "k")
