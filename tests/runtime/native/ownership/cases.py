"""Structured programs, and what they do to NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tests.runtime.native.ownership.programs import Program

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """`meaning` does in place what the program does on that many ranks."""

    name: str
    program: Program
    make: Callable[[], Arrays]
    meaning: Callable[[Arrays, int], None]


CASES: dict[str, Case] = {}


def case(program: Program, make: Callable[[], Arrays]):
    def add(meaning: Callable[[Arrays, int], None]) -> Callable[[Arrays, int], None]:
        CASES[meaning.__name__] = Case(meaning.__name__, program, make, meaning)
        return meaning

    return add


def random(*shapes: tuple[int, ...], seed: int = 0) -> Callable[[], Arrays]:
    """Arrays A, B, C … of doubles."""

    def make() -> Arrays:
        rng = np.random.default_rng(seed)
        return {name: rng.random(shape) for name, shape in zip("ABCDEF", shapes, strict=False)}

    return make


def doubles(source: str, names: str, phases: str, **more: tuple[str, ...]) -> Program:
    return Program(source, tuple(names), ("double",) * len(names), tuple(phases.split()), **more)


# Stencils -----------------------------------------------------------------------------------------

JACOBI = doubles(
    """
enum { N = 20, T = 7 };
static void sweep(const i64 *p, const i64 *r) {
    avial_read(p[0], BOX(r[0] - 1, 0, r[1] + 1, N));
    avial_write(1 - p[0], BOX(r[0], 1, r[1], N - 1), 1);
}
static void program(double *A, double *B) {
    for (int t = 0; t < T; t++) {
        double *x = t % 2 ? B : A, *y = t % 2 ? A : B;
        PHASE(t % 2, REPLICATE, sweep, BOX(t % 2), SPACE(1, N - 1, N), {
            for (i64 i = r[0]; i < r[1]; i++) for (i64 j = 1; j < N - 1; j++)
                y[i*N+j] = 0.2 * (x[i*N+j] + x[(i-1)*N+j] + x[(i+1)*N+j] + x[i*N+j-1] + x[i*N+j+1]);
        });
    }
}
""",
    "AB",
    "even odd",
)


@case(JACOBI, random((20, 20), (20, 20)))
def stencil_in_two_dimensions(a: Arrays, ranks: int) -> None:
    for t in range(7):
        x, y = (a["B"], a["A"]) if t % 2 else (a["A"], a["B"])
        y[1:-1, 1:-1] = 0.2 * (
            x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
        )


@case(
    doubles(
        """
enum { N = 97 };
static void sweep(const i64 *p, const i64 *r) {
    avial_read(p[0], BOX(r[0] - 7, r[1] + 7)); avial_write(1 - p[0], BOX(r[0], r[1]), 1);
}
static void program(double *A, double *B) {
    for (int t = 0; t < 40; t++) {
        double *x = t % 2 ? B : A, *y = t % 2 ? A : B;
        PHASE(0, REPLICATE, sweep, BOX(t % 2), SPACE(7, N - 7, N), {
            for (i64 i = r[0]; i < r[1]; i++) y[i] = (x[i-7] + x[i+7]) * 0.5;
        });
    }
}
""",
        "AB",
        "sweep",
    ),
    random((97,), (97,)),
)
def wide_stencil_in_one_dimension(a: Arrays, ranks: int) -> None:
    for t in range(40):
        x, y = (a["B"], a["A"]) if t % 2 else (a["A"], a["B"])
        y[7:-7] = (x[:-14] + x[14:]) * 0.5


@case(
    doubles(
        """
enum { N = 9, M = 5, K = 4 };
#define AT(i, j, k) (((i) * M + (j)) * K + (k))
static void sweep(const i64 *p, const i64 *r) {
    avial_read(p[0], BOX(r[0] - 1, 0, 0, r[1] + 1, M, K));
    avial_write(1 - p[0], BOX(r[0], 1, 1, r[1], M - 1, K - 1), 1);
}
static void program(double *A, double *B) {
    for (int t = 0; t < 4; t++) {
        double *x = t % 2 ? B : A, *y = t % 2 ? A : B;
        PHASE(0, REPLICATE, sweep, BOX(t % 2), SPACE(1, N - 1, N), {
            for (i64 i = r[0]; i < r[1]; i++) for (i64 j = 1; j < M - 1; j++)
                for (i64 k = 1; k < K - 1; k++)
                    y[AT(i, j, k)] = x[AT(i, j, k)] - (x[AT(i-1, j, k)] + x[AT(i+1, j, k)])
                        + (x[AT(i, j-1, k)] + x[AT(i, j+1, k)])
                        * (x[AT(i, j, k-1)] + x[AT(i, j, k+1)]);
        });
    }
}
""",
        "AB",
        "sweep",
    ),
    random((9, 5, 4), (9, 5, 4)),
)
def stencil_in_three_dimensions(a: Arrays, ranks: int) -> None:
    inner = slice(1, -1)
    for t in range(4):
        x, y = (a["B"], a["A"]) if t % 2 else (a["A"], a["B"])
        y[inner, inner, inner] = (
            x[inner, inner, inner]
            - (x[:-2, inner, inner] + x[2:, inner, inner])
            + (x[inner, :-2, inner] + x[inner, 2:, inner])
            * (x[inner, inner, :-2] + x[inner, inner, 2:])
        )


# Other shapes of phases ---------------------------------------------------------------------------


@case(
    doubles(
        """
enum { N = 24 };
static void halves(const i64 *p, const i64 *r) {
    avial_read(0, BOX(r[0], 0, r[1], 3)); avial_write(0, BOX(r[0] + N/2, 0, r[1] + N/2, 3), 1);
}
static void doubled(const i64 *p, const i64 *r) {
    avial_read(0, BOX(r[0], 0, r[1], 3)); avial_write(0, BOX(r[0], 0, r[1], 3), 1);
}
static void program(double *A) {
    for (int t = 0; t < 3; t++) {
        PHASE(0, REPLICATE, halves, 0, SPACE(0, N/2, N/2), {
            for (i64 i = 3 * r[0]; i < 3 * r[1]; i++) A[i + 3*N/2] = A[i] + 1;
        });
        PHASE(1, REPLICATE, doubled, 0, SPACE(0, N, N), {
            for (i64 i = 3 * r[0]; i < 3 * r[1]; i++) A[i] = 2 * A[i] - 0.1;
        });
    }
}
""",
        "A",
        "halves doubled",
    ),
    random((24, 3)),
)
def copies_inside_an_array(a: Arrays, ranks: int) -> None:
    for _ in range(3):
        a["A"][12:] = a["A"][:12] + 1
        a["A"][:] = 2 * a["A"] - 0.1


@case(
    doubles(
        """
enum { N = 17, M = 11 };
static void turn(const i64 *p, const i64 *r) {
    avial_read(0, BOX(0, r[0], M, r[1])); avial_write(1, BOX(r[0], 0, r[1], M), 1);
}
static void back(const i64 *p, const i64 *r) {
    avial_read(1, BOX(0, r[0], N, r[1])); avial_write(0, BOX(r[0], 0, r[1], N), 1);
}
static void program(double *A, double *B) {
    for (int t = 0; t < 3; t++) {
        PHASE(0, REPLICATE, turn, 0, SPACE(0, N, N), {
            for (i64 i = r[0]; i < r[1]; i++) for (i64 j = 0; j < M; j++) B[i*M+j] = A[j*N+i] + 1;
        });
        PHASE(1, REPLICATE, back, 0, SPACE(0, M, M), {
            for (i64 j = r[0]; j < r[1]; j++) for (i64 i = 0; i < N; i++) A[j*N+i] = B[i*M+j] * 3;
        });
    }
}
""",
        "AB",
        "turn back",
    ),
    random((11, 17), (17, 11)),
)
def transposes(a: Arrays, ranks: int) -> None:
    for _ in range(3):
        a["B"][:] = a["A"].T + 1
        a["A"][:] = a["B"].T * 3


@case(
    doubles(
        """
enum { N = 13, M = 9, K = 6 };
static void init(const i64 *p, const i64 *r) { avial_write(1, BOX(r[0], 0, r[1], M), 1); }
static void gemm(const i64 *p, const i64 *r) {
    avial_read(0, BOX(r[0], 0, r[1], K)); avial_read(1, BOX(0, 0, K, M));
    avial_read(2, BOX(r[0], 0, r[1], M)); avial_write(2, BOX(r[0], 0, r[1], M), 1);
}
static void program(double *A, double *B, double *C) {
    for (int t = 0; t < 3; t++) {
        PHASE(0, REPLICATE, init, 0, SPACE(0, K, K), {
            for (i64 k = r[0]; k < r[1]; k++)
                for (i64 j = 0; j < M; j++) B[k*M+j] = k + 0.1 * j + t;
        });
        PHASE(1, REPLICATE, gemm, 0, SPACE(0, N, N), {
            for (i64 i = r[0]; i < r[1]; i++) for (i64 j = 0; j < M; j++)
                for (i64 k = 0; k < K; k++) C[i*M+j] += A[i*K+k] * B[k*M+j];
        });
    }
}
""",
        "ABC",
        "init gemm",
    ),
    random((13, 6), (6, 9), (13, 9)),
)
def matrix_product_of_what_all_wrote(a: Arrays, ranks: int) -> None:
    for t in range(3):
        a["B"][:] = np.arange(6.0)[:, None] + 0.1 * np.arange(9) + t
        for k in range(6):
            a["C"] += a["A"][:, k, None] * a["B"][k]


@case(
    doubles(
        """
enum { N = 31 };
static void some(const i64 *p, const i64 *r) {
    avial_read(0, BOX(N - r[1], N - r[0])); avial_write(1, BOX(r[0], r[1]), 0);
}
static void all(const i64 *p, const i64 *r) {
    avial_read(1, BOX(r[0], r[1])); avial_write(0, BOX(r[0], r[1]), 1);
}
static void program(double *A, double *B) {
    for (int t = 0; t < 4; t++) {
        PHASE(0, REPLICATE, some, 0, SPACE(0, N, N), {
            for (i64 i = r[0]; i < r[1]; i++) if (A[N-1-i] > 0.5) B[i] = A[N-1-i];
        });
        PHASE(1, REPLICATE, all, 0, SPACE(0, N, N), {
            for (i64 i = r[0]; i < r[1]; i++) A[i] = B[i] * 0.9;
        });
    }
}
""",
        "AB",
        "some all",
    ),
    random((31,), (31,)),
)
def guarded_writes(a: Arrays, ranks: int) -> None:
    for _ in range(4):
        a["B"][:] = np.where(a["A"][::-1] > 0.5, a["A"][::-1], a["B"])
        a["A"][:] = a["B"] * 0.9


@case(
    doubles(
        """
enum { N = 14 };
static void rows(const i64 *p, const i64 *r) {
    i64 k = p[0];
    avial_read(0, BOX(k, k, k + 1, N)); avial_read(0, BOX(r[0], k, r[1], N));
    avial_write(0, BOX(r[0], k, r[1], N), 1);
}
static void program(double *A) {
    for (i64 k = 0; k < N; k++)
        PHASE(0, REPLICATE, rows, BOX(k), SPACE(k + 1, N, N), {
            for (i64 i = r[0]; i < r[1]; i++) {
                double factor = A[i*N+k] / A[k*N+k];
                for (i64 j = k; j < N; j++) A[i*N+j] -= factor * A[k*N+j];
            }
        });
}
""",
        "A",
        "rows",
    ),
    random((14, 14)),
)
def elimination(a: Arrays, ranks: int) -> None:
    matrix = a["A"]
    for k in range(14):
        for i in range(k + 1, 14):
            matrix[i, k:] -= matrix[i, k] / matrix[k, k] * matrix[k, k:]


@case(
    doubles(
        """
enum { N = 10 };
static void one(const i64 *p, const i64 *r) {
    avial_read(0, BOX(0, N)); avial_write(1, BOX(0, N), 1);
}
static void each(const i64 *p, const i64 *r) {
    avial_read(1, BOX(0, N)); avial_read(2, 0); avial_write(0, BOX(r[0], r[1]), 1);
}
static void scalar(const i64 *p, const i64 *r) { avial_read(1, BOX(3, 4)); avial_write(2, 0, 1); }
static void program(double *A, double *B, double *C) {
    for (int t = 0; t < 3; t++) {
        PHASE(0, TASK, one, 0, SPACE(0, 1, 0), {
            B[0] = A[0]; for (i64 i = 1; i < N; i++) B[i] = B[i-1] + A[i];
        });
        PHASE(1, EVERYWHERE, scalar, 0, SPACE(0, 1, 0), { *C = B[3] + 1; });
        PHASE(2, REPLICATE, each, 0, SPACE(0, N, N), {
            for (i64 i = r[0]; i < r[1]; i++) A[i] = B[N-1-i] + *C;
        });
    }
}
""",
        "ABC",
        "one scalar each",
    ),
    random((10,), (10,), ()),
)
def tasks_and_what_everyone_does(a: Arrays, ranks: int) -> None:
    for _ in range(3):
        a["B"][:] = np.cumsum(a["A"])
        a["C"][()] = a["B"][3] + 1
        a["A"][:] = a["B"][::-1] + a["C"]


@case(
    doubles(
        """
enum { N = 12 };
static void all(const i64 *p, const i64 *r) {
    avial_read(0, BOX(r[0], r[1])); avial_write(1, BOX(0, N), 0);
}
static void own(const i64 *p, const i64 *r) {
    avial_read(1, BOX(r[0], r[1])); avial_write(0, BOX(r[0], r[1]), 1);
}
static void program(double *A, double *B) {
    for (int t = 0; t < 3; t++) {
        PHASE(0, REPLICATE, all, 0, SPACE(0, N, N), {
            for (i64 i = r[0]; i < r[1]; i++) B[(i * 5) % N] = A[i];
        });
        PHASE(1, REPLICATE, own, 0, SPACE(0, N, N), {
            for (i64 i = r[0]; i < r[1]; i++) A[i] = B[i] + 1;
        });
    }
}
""",
        "AB",
        "all own",
    ),
    random((12,), (12,)),
)
def writes_that_may_meet(a: Arrays, ranks: int) -> None:
    for _ in range(3):
        a["B"][np.arange(12) * 5 % 12] = a["A"]
        a["A"][:] = a["B"] + 1


@case(
    doubles(
        """
enum { N = 37 };
static void sweep(const i64 *p, const i64 *r) {
    avial_read(0, BOX(r[0] - 1, r[1] + 1)); avial_write(1, BOX(r[0], r[1]), 1);
}
static void copy(const i64 *p, const i64 *r) {
    avial_read(1, BOX(r[0], r[1])); avial_write(0, BOX(r[0], r[1]), 1);
}
static void program(double *A, double *B) {
    i64 weights[4] = {9, 4, 0, 1};
    for (int t = 0; t < 4; t++) {
        avial_layout(t % 2 ? 3 : 1, 0, 0, 0);
        PHASE(0, REPLICATE, sweep, 0, SPACE(1, N - 1, N), {
            for (i64 i = r[0]; i < r[1]; i++) B[i] = A[i-1] + A[i+1];
        });
        avial_cost(4, weights);
        PHASE(1, REPLICATE, copy, 0, SPACE(1, N - 1, N), {
            for (i64 i = r[0]; i < r[1]; i++) A[i] = B[i] * 0.3;
        });
    }
}
""",
        "AB",
        "sweep copy",
    ),
    random((37,), (37,)),
)
def cyclic_and_balanced(a: Arrays, ranks: int) -> None:
    for _ in range(4):
        a["B"][1:-1] = a["A"][:-2] + a["A"][2:]
        a["A"][1:-1] = a["B"][1:-1] * 0.3


@case(
    doubles(
        """
enum { N = 15, M = 14 };
static void sweep(const i64 *p, const i64 *r) {
    avial_read(p[0], BOX(r[0] - 1, r[2], r[1] + 1, r[3]));
    avial_read(p[0], BOX(r[0], r[2] - 1, r[1], r[3] + 1));
    avial_write(1 - p[0], BOX(r[0], r[2], r[1], r[3]), 1);
}
static void program(double *A, double *B) {
    for (int t = 0; t < 5; t++) {
        double *x = t % 2 ? B : A, *y = t % 2 ? A : B;
        i64 space[10] = {1, N - 1, 1, 0, N, 1, M - 1, 1, 0, M};
        avial_layout(0, 2, 0, 0);
        PHASE(0, REPLICATE, sweep, BOX(t % 2), space, {
            for (i64 i = r[0]; i < r[1]; i++) for (i64 j = r[2]; j < r[3]; j++)
                y[i*M+j] = x[(i-1)*M+j] + x[(i+1)*M+j] - x[i*M+j-1] * x[i*M+j+1];
        });
    }
}
""",
        "AB",
        "sweep",
    ),
    random((15, 14), (15, 14)),
)
def grid(a: Arrays, ranks: int) -> None:
    for t in range(5):
        x, y = (a["B"], a["A"]) if t % 2 else (a["A"], a["B"])
        y[1:-1, 1:-1] = x[:-2, 1:-1] + x[2:, 1:-1] - x[1:-1, :-2] * x[1:-1, 2:]


@case(
    doubles(
        """
enum { N = 30 };
static void fill(const i64 *p, const i64 *r) { avial_write(1, BOX(r[0], 0, r[1], N), 1); }
static void sum(const i64 *p, const i64 *r) {
    avial_read(1, BOX(0, 0, N, N)); avial_write(0, BOX(r[0], 0, r[1], N), 1);
}
static void program(double *A, double *B) {
    for (int t = 0; t < 2; t++) {
        PHASE(0, REPLICATE, fill, 0, SPACE(0, N, N), {
            for (i64 i = r[0]; i < r[1]; i++) for (i64 j = 0; j < N; j++) B[i*N+j] = i * j + t;
        });
        i64 odd[2] = {0, 1};
        if (t) avial_layout(0, 0, 2, odd);
        PHASE(1, REPLICATE, sum, 0, SPACE(0, N, N), {
            for (i64 i = r[0]; i < r[1]; i++) for (i64 j = 0; j < N; j++)
                A[i*N+j] = B[j*N+i] + B[((i + j) % N)*N + j];
        });
    }
}
i64 avial_chunk = 100, avial_staging = 300, avial_piece = 1 << 20;
""",
        "AB",
        "fill sum",
        temporary=("B",),
    ),
    random((30, 30), (30, 30)),
)
def messages_in_pieces_with_little_room(a: Arrays, ranks: int) -> None:
    i, j = np.indices((30, 30))
    for t in range(2):
        b = i * j + t
        a["A"][:] = b.T + b[(i + j) % 30, j]


@case(
    doubles(
        """
enum { N = 30 };
static void fill(const i64 *p, const i64 *r) { avial_write(1, BOX(r[0], 0, r[1], N), 1); }
static void sum(const i64 *p, const i64 *r) {
    avial_read(1, BOX(0, 0, N, N)); avial_write(0, BOX(r[0], 0, r[1], N), 1);
}
static void program(double *A, double *B) {
    for (int t = 0; t < 2; t++) {
        PHASE(0, REPLICATE, fill, 0, SPACE(0, N, N), {
            for (i64 i = r[0]; i < r[1]; i++) for (i64 j = 0; j < N; j++) B[i*N+j] = i * j + t;
        });
        i64 odd[2] = {0, 1};
        if (t) avial_layout(0, 0, 2, odd);
        PHASE(1, REPLICATE, sum, 0, SPACE(0, N, N), {
            for (i64 i = r[0]; i < r[1]; i++) for (i64 j = 0; j < N; j++)
                A[i*N+j] = B[j*N+i] + B[((i + j) % N)*N + j];
        });
    }
}
i64 avial_chunk = 100, avial_piece = 36; /* a row has 240 bytes, an element 8 */
""",
        "AB",
        "fill sum",
        temporary=("B",),
    ),
    random((30, 30), (30, 30)),
)
def long_messages_are_packed_piece_by_piece(a: Arrays, ranks: int) -> None:
    i, j = np.indices((30, 30))
    for t in range(2):
        b = i * j + t
        a["A"][:] = b.T + b[(i + j) % 30, j]


@case(
    doubles(
        """
enum { N = 8 };
static void step(const i64 *p, const i64 *r) {
    avial_read(0, BOX(r[0] - 1, r[1] + 1)); avial_write(1, BOX(r[0], r[1]), 1);
}
static void back(const i64 *p, const i64 *r) {
    avial_read(1, BOX(r[0], r[1])); avial_write(0, BOX(r[0], r[1]), 1);
}
static void program(double *A, double *B) {
    for (int t = 0; t < 1500; t++) {
        PHASE(0, REPLICATE, step, 0, SPACE(1, N - 1, N), {
            for (i64 i = r[0]; i < r[1]; i++) B[i] = 0.5 * (A[i-1] + A[i+1]);
        });
        PHASE(1, REPLICATE, back, 0, SPACE(1, N - 1, N), {
            for (i64 i = r[0]; i < r[1]; i++) A[i] = B[i];
        });
    }
}
""",
        "AB",
        "step back",
    ),
    random((8,), (8,)),
)
def thousands_of_phases(a: Arrays, ranks: int) -> None:
    for _ in range(1500):
        a["B"][1:-1] = 0.5 * (a["A"][:-2] + a["A"][2:])
        a["A"][1:-1] = a["B"][1:-1]


@case(
    doubles(
        """
enum { N = 40 };
static void step(const i64 *p, const i64 *r) {
    avial_read(0, BOX(N - r[1], N - r[0])); avial_write(1, BOX(r[0], r[1]), 1);
}
static void all(const i64 *p, const i64 *r) {
    avial_read(1, BOX(r[0], r[1])); avial_write(0, BOX(r[0], r[1]), 1);
}
static void first(const i64 *p, const i64 *r) { avial_read(0, BOX(0, 1)); }
static void program(double *A, double *B) {
    double seen = 0;
    do {
        PHASE(0, REPLICATE, step, 0, SPACE(0, N, N), {
            for (i64 i = r[0]; i < r[1]; i++) B[i] = A[N-1-i] * 1.5;
        });
        PHASE(1, REPLICATE, all, 0, SPACE(0, N, N), {
            for (i64 i = r[0]; i < r[1]; i++) A[i] = B[i];
        });
        PHASE(2, EVERYWHERE, first, 0, SPACE(0, 1, 0), { seen = A[0]; });
    } while (avial_again(seen < 100));
}
""",
        "AB",
        "step all first",
    ),
    random((40,), (40,)),
)
def loop_until_the_data_say_so(a: Arrays, ranks: int) -> None:
    while True:
        a["A"][:] = a["B"][:] = a["A"][::-1] * 1.5
        if a["A"][0] >= 100:
            return


@case(
    doubles(
        """
enum { N = 16 };
static void find(const i64 *p, const i64 *r) { avial_read(0, BOX(0, 1)); }
static void row(const i64 *p, const i64 *r) {
    avial_read(0, BOX(p[0], p[0] + 1)); avial_write(1, BOX(r[0], r[1]), 1);
}
static void program(double *A, double *B) {
    i64 at = 0;
    PHASE(0, EVERYWHERE, find, 0, SPACE(0, 1, 0), { at = A[0] > 2 ? 3 : 11; });
    avial_unknown();
    PHASE(1, REPLICATE, row, BOX(at), SPACE(0, N, N), {
        for (i64 i = r[0]; i < r[1]; i++) B[i] = A[at] + i;
    });
}
""",
        "AB",
        "find row",
    ),
    random((16,), (16,)),
)
def element_the_data_choose(a: Arrays, ranks: int) -> None:
    a["B"][:] = a["A"][11] + np.arange(16)


# Reductions ---------------------------------------------------------------------------------------


def partial_sums(old: np.ndarray, terms: np.ndarray, ranks: int) -> np.ndarray:
    """`old` and the terms (first axis), summed as the runtime does: rank by rank."""
    bounds = [k * len(terms) // ranks for k in range(ranks + 1)]
    total, begun = old.copy(), False
    for low, high in pairwise(bounds):
        if low == high:
            continue
        partial = np.full_like(old, -0.0) if begun else total
        for term in terms[low:high]:
            partial = partial + term
        total = total + partial if begun else partial
        begun = True
    return total


@case(
    doubles(
        """
enum { N = 23 };
static void dot(const i64 *p, const i64 *r) {
    avial_read(0, BOX(r[0], r[1])); avial_read(1, BOX(r[0], r[1])); avial_reduce(2, 0, 8);
}
static void scale(const i64 *p, const i64 *r) {
    avial_read(2, 0); avial_read(0, BOX(r[0], r[1])); avial_write(0, BOX(r[0], r[1]), 1);
}
static void program(double *A, double *B, double *C) {
    for (int t = 0; t < 3; t++) {
        REDUCTION(0, REPLICATE, dot, 0, SPACE(0, N, N), 2, double, 8, {
            for (i64 i = r[0]; i < r[1]; i++) *acc += A[i] * B[i];
        });
        PHASE(1, REPLICATE, scale, 0, SPACE(0, N, N), {
            for (i64 i = r[0]; i < r[1]; i++) A[i] = A[i] / *C;
        });
    }
}
""",
        "ABC",
        "dot scale",
    ),
    random((23,), (23,), ()),
)
def dot_product(a: Arrays, ranks: int) -> None:
    for _ in range(3):
        a["C"][...] = partial_sums(a["C"], a["A"] * a["B"], ranks)
        a["A"][:] = a["A"] / a["C"]


@case(
    doubles(
        """
enum { N = 19, M = 6000 };
static void sum(const i64 *p, const i64 *r) {
    avial_read(0, BOX(r[0], 0, r[1], M)); avial_reduce(1, BOX(0, M), 8);
}
static void back(const i64 *p, const i64 *r) {
    avial_read(1, BOX(r[0], r[1])); avial_write(1, BOX(r[0], r[1]), 1);
}
static void program(double *A, double *B) {
    for (int t = 0; t < 2; t++) {
        REDUCTION(0, REPLICATE, sum, 0, SPACE(0, N, N), 1, double, 8 * M, {
            for (i64 i = r[0]; i < r[1]; i++) for (i64 j = 0; j < M; j++) acc[j] += A[i*M+j];
        });
        PHASE(1, REPLICATE, back, 0, SPACE(0, M, M), {
            for (i64 j = r[0]; j < r[1]; j++) B[j] = -B[j];
        });
    }
}
""",
        "AB",
        "sum back",
    ),
    random((19, 6000), (6000,)),
)
def column_sums_shared_out(a: Arrays, ranks: int) -> None:
    for _ in range(2):
        a["B"][:] = -partial_sums(a["B"], a["A"], ranks)


@case(
    doubles(
        """
enum { N = 21, M = 8 };
static void bands(const i64 *p, const i64 *r) {
    avial_read(0, BOX(r[0], r[1])); avial_reduce(1, BOX(r[0] / 3, r[1] / 3 + 1), 8);
}
static void program(double *A, double *B) {
    REDUCTION(0, REPLICATE, bands, 0, SPACE(0, N, N), 1, double, 8 * M, {
        for (i64 i = r[0]; i < r[1]; i++) acc[i / 3] += A[i];
    });
}
""",
        "AB",
        "bands",
    ),
    random((21,), (8,)),
)
def sums_that_meet_at_the_edges(a: Arrays, ranks: int) -> None:
    bounds = [k * 21 // ranks for k in range(ranks + 1)]
    for band in range(7):
        members = range(3 * band, 3 * band + 3)
        total, begun = a["B"][band], False
        for low, high in pairwise(bounds):
            # A rank takes part where its box says so, with or without a term.
            if low == high or not low // 3 <= band < high // 3 + 1:
                continue
            partial = np.float64(-0.0) if begun else total
            for i in members:
                if low <= i < high:
                    partial = partial + a["A"][i]
            total = total + partial if begun else partial
            begun = True
        a["B"][band] = total


@case(
    Program(
        """
enum { N = 500, BINS = 16 };
static void count(const i64 *p, const i64 *r) {
    avial_read(0, BOX(r[0], r[1])); avial_reduce(1, BOX(0, BINS), 3);
}
static void program(int *A, int *B) {
    REDUCTION(0, REPLICATE, count, 0, SPACE(0, N, N), 1, int, 4 * BINS, {
        for (i64 i = r[0]; i < r[1]; i++) acc[A[i] % BINS]++;
    });
    REDUCTION(1, TASK, count, 0, SPACE(0, N, N), 1, int, 4 * BINS, {
        for (i64 i = r[0]; i < r[1]; i++) acc[A[i] % BINS] += 2;
    });
    REDUCTION(2, EVERYWHERE, count, 0, SPACE(0, N, N), 1, int, 4 * BINS, {
        for (i64 i = r[0]; i < r[1]; i++) acc[A[i] % BINS] += 4;
    });
}
""",
        ("A", "B"),
        ("int", "int"),
        ("count", "task", "everywhere"),
    ),
    lambda: {
        "A": np.random.default_rng(3).integers(0, 1000, 500).astype(np.int32),
        "B": np.arange(16, dtype=np.int32),
    },
)
def histogram(a: Arrays, ranks: int) -> None:
    a["B"] += 7 * np.bincount(a["A"] % 16, minlength=16).astype(np.int32)


@case(
    doubles(
        """
enum { N = 11 };
static void mixed(const i64 *p, const i64 *r) {
    avial_read(0, BOX(r[0], r[1])); avial_reduce(1, BOX(0, 2), 8); avial_write(1, BOX(1, 3), 0);
}
static void program(double *A, double *B) {
    REDUCTION(0, REPLICATE, mixed, 0, SPACE(0, N, N), 1, double, 24, {
        for (i64 i = r[0]; i < r[1]; i++) { acc[0] += A[i]; if (A[i] > 0.9) B[2] = A[i]; }
    });
}
""",
        "AB",
        "mixed",
    ),
    random((11,), (3,)),
)
def sum_beside_a_write(a: Arrays, ranks: int) -> None:
    for x in a["A"]:
        a["B"][0] = a["B"][0] + x
        if x > 0.9:
            a["B"][2] = x
