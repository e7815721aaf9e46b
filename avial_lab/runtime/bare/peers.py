"""What a user would write in CuPy instead, for each kind of race; in NumPy where there is no CuPy.

Arrays on the device -> a function that does one turn on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Turn = Callable[[], object]
Arrays = Mapping[str, Any]

STEP = """
typedef {T} T;
extern "C" __global__ void step(const T *a, T *b, int n) {{
    int j = blockIdx.x * blockDim.x + threadIdx.x + 1;
    int i = blockIdx.y * blockDim.y + threadIdx.y + 1;
    if (i >= n - 1 || j >= n - 1) return;
    long long k = (long long)i * n + j;
    b[k] = (T)0.2 * (a[k] + a[k - 1] + a[k + 1] + a[k + n] + a[k - n]);
}}
"""

STEP_3D = """
typedef {T} T;
extern "C" __global__ void step(const T *a, T *b, int n) {{
    int k = blockIdx.x * blockDim.x + threadIdx.x + 1;
    int j = blockIdx.y * blockDim.y + threadIdx.y + 1;
    int i = blockIdx.z + 1;
    if (i >= n - 1 || j >= n - 1 || k >= n - 1) return;
    long long p = ((long long)i * n + j) * n + k, q = (long long)n * n;
    b[p] = (T)0.125 * (a[p - 1] + a[p + 1] + a[p - n] + a[p + n] + a[p - q] + a[p + q])
         + (T)0.25 * a[p];
}}
"""

NOTHING = """
extern "C" __global__ void nothing(float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 0.5f * y[i];
}
"""

C_TYPE = {"f32": "float", "f64": "double"}


def peer(kind: str, xp: Any, arrays: Arrays, element: str) -> Turn:  # noqa: ANN401 (NumPy or CuPy)
    """Of one kind; with CuPy in one kernel for each sweep, as an expert writes it."""
    made = _IN_CUPY if xp.__name__ == "cupy" else _IN_NUMPY
    return made[kind](xp, arrays, element)


def _axpy(xp: Any, a: Arrays, _: str) -> Turn:  # noqa: ANN401
    kernel = xp.ElementwiseKernel("T x, T z", "T y", "y = (T)0.5 * x + z", "peer_axpy")
    return lambda: kernel(a["x"], a["y"], a["y"])


def _scale(xp: Any, a: Arrays, _: str) -> Turn:  # noqa: ANN401
    kernel = xp.ElementwiseKernel("T x, T f", "T y", "y = f * x", "peer_scale")
    half, two = a["a"].dtype.type(0.5), a["a"].dtype.type(2)
    return lambda: (kernel(a["a"], half, a["b"]), kernel(a["b"], two, a["a"]))


def _exp(xp: Any, a: Arrays, _: str) -> Turn:  # noqa: ANN401
    kernel = xp.ElementwiseKernel("T x", "T y", "y = exp(-x * x)", "peer_exp")
    return lambda: kernel(a["y"], a["y"])


def _jacobi(xp: Any, a: Arrays, element: str) -> Turn:  # noqa: ANN401
    step = xp.RawKernel(STEP.format(T=C_TYPE[element]), "step")
    n = a["a"].shape[0]
    grid, block, size = ((n + 63) // 64, (n + 3) // 4), (64, 4), xp.int32(n)
    return lambda: (
        step(grid, block, (a["a"], a["b"], size)),
        step(grid, block, (a["b"], a["a"], size)),
    )


def _jacobi_3d(xp: Any, a: Arrays, element: str) -> Turn:  # noqa: ANN401
    step = xp.RawKernel(STEP_3D.format(T=C_TYPE[element]), "step")
    n = a["a"].shape[0]
    grid, block, size = ((n + 63) // 64, (n + 3) // 4, n - 2), (64, 4), xp.int32(n)
    return lambda: (
        step(grid, block, (a["a"], a["b"], size)),
        step(grid, block, (a["b"], a["a"], size)),
    )


def _sum(xp: Any, a: Arrays, _: str) -> Turn:  # noqa: ANN401
    def turn() -> None:
        a["s"] += xp.sum(a["x"])

    return turn


def _gemm(xp: Any, a: Arrays, _: str) -> Turn:  # noqa: ANN401
    room = xp.empty_like(a["c"])

    def turn() -> None:
        xp.matmul(a["a"], a["b"], out=room)
        xp.add(a["c"], room, out=a["c"])

    return turn


def _launch(xp: Any, a: Arrays, _: str) -> Turn:  # noqa: ANN401
    kernel = xp.RawKernel(NOTHING, "nothing")
    y, n = a["y"], xp.int32(a["y"].size)
    blocks = ((a["y"].size + 255) // 256,)
    return lambda: kernel(blocks, (256,), (y, n))


_IN_CUPY = {
    "axpy": _axpy, "scale": _scale, "exp": _exp, "jacobi": _jacobi, "jacobi-3d": _jacobi_3d,
    "sum": _sum, "gemm": _gemm, "launch": _launch, "steps": _jacobi,
}  # fmt: skip


def _numpy_axpy(xp: Any, a: Arrays, _: str) -> Turn:  # noqa: ANN401
    return lambda: xp.add(a["x"] * a["x"].dtype.type(0.5), a["y"], out=a["y"])


def _numpy_scale(xp: Any, a: Arrays, _: str) -> Turn:  # noqa: ANN401
    one = a["a"].dtype.type
    return lambda: (
        xp.multiply(a["a"], one(0.5), out=a["b"]),
        xp.multiply(a["b"], one(2), out=a["a"]),
    )


def _numpy_exp(xp: Any, a: Arrays, _: str) -> Turn:  # noqa: ANN401
    return lambda: xp.exp(-a["y"] * a["y"], out=a["y"])


def _numpy_jacobi(_: Any, a: Arrays, __: str) -> Turn:  # noqa: ANN401
    one = a["a"].dtype.type

    def step(x: Any, y: Any) -> None:  # noqa: ANN401
        y[1:-1, 1:-1] = one(0.2) * (
            x[1:-1, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[2:, 1:-1] + x[:-2, 1:-1]
        )

    return lambda: (step(a["a"], a["b"]), step(a["b"], a["a"]))


def _numpy_jacobi_3d(_: Any, a: Arrays, __: str) -> Turn:  # noqa: ANN401
    one, i = a["a"].dtype.type, slice(1, -1)

    def step(x: Any, y: Any) -> None:  # noqa: ANN401
        around = x[i, i, :-2] + x[i, i, 2:] + x[i, :-2, i] + x[i, 2:, i] + x[:-2, i, i]
        y[i, i, i] = one(0.125) * (around + x[2:, i, i]) + one(0.25) * x[i, i, i]

    return lambda: (step(a["a"], a["b"]), step(a["b"], a["a"]))


def _numpy_launch(xp: Any, a: Arrays, _: str) -> Turn:  # noqa: ANN401
    return lambda: xp.multiply(a["y"], a["y"].dtype.type(0.5), out=a["y"])


_IN_NUMPY = {
    "axpy": _numpy_axpy, "scale": _numpy_scale, "exp": _numpy_exp, "jacobi": _numpy_jacobi,
    "jacobi-3d": _numpy_jacobi_3d, "sum": _sum, "gemm": _gemm, "launch": _numpy_launch,
    "steps": _numpy_jacobi,
}  # fmt: skip
