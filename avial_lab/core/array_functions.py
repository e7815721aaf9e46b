"""The functions on arrays: our names, NumPy's, and which of them have one result to the last bit.

Name, element types -> what NumPy calls it, and whether NumPy's bits are those of compiled code.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

UNARY: dict[str, str] = {
    "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh",
    "atan": "arctan", "atanh": "arctanh", "bitwise_invert": "invert", "ceil": "ceil",
    "conj": "conjugate", "cos": "cos", "cosh": "cosh", "exp": "exp", "expm1": "expm1",
    "floor": "floor", "isfinite": "isfinite", "isinf": "isinf", "isnan": "isnan", "log": "log",
    "log10": "log10", "log1p": "log1p", "log2": "log2", "logical_not": "logical_not",
    "negative": "negative", "positive": "positive", "reciprocal": "reciprocal", "round": "rint",
    "sign": "sign", "sin": "sin", "sinh": "sinh", "sqrt": "sqrt", "square": "square", "tan": "tan",
    "tanh": "tanh", "trunc": "trunc",
}  # fmt: skip
BINARY: dict[str, str] = {
    "add": "add", "atan2": "arctan2", "bitwise_and": "bitwise_and",
    "bitwise_left_shift": "left_shift", "bitwise_or": "bitwise_or",
    "bitwise_right_shift": "right_shift", "bitwise_xor": "bitwise_xor", "copysign": "copysign",
    "divide": "true_divide", "equal": "equal", "floor_divide": "floor_divide", "greater": "greater",
    "greater_equal": "greater_equal", "less": "less", "less_equal": "less_equal",
    "logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor",
    "maximum": "maximum", "minimum": "minimum", "multiply": "multiply", "not_equal": "not_equal",
    "pow": "power", "remainder": "remainder", "subtract": "subtract",
}  # fmt: skip
"""Our name -> the ufunc of NumPy that has its meaning and says its types."""

REDUCTIONS: dict[str, str] = {
    "sum": "add", "prod": "multiply", "min": "minimum", "max": "maximum", "any": "logical_or",
    "all": "logical_and",
}  # fmt: skip

EXTREMES: dict[str, str] = {"argmin": "min", "argmax": "max"}
"""What finds the place of the first of the extremes, along one dimension."""

_ELEMENTARY = frozenset(
    {"acos", "acosh", "asin", "asinh", "atan", "atanh", "atan2", "cos", "cosh", "exp", "expm1",
     "log", "log10", "log1p", "log2", "pow", "sin", "sinh", "tan", "tanh"}
)  # fmt: skip
_EXACT_COMPLEX = frozenset(
    {"negative", "conj", "real", "imag", "times_i", "square", "add", "subtract", "multiply",
     "equal", "not_equal"}
)  # fmt: skip

MOST_SUMMED, MOST_MULTIPLIED = 1 << 12, 1 << 15
"""Terms in all of a sum (or product), and of a product of matrices, up to which they are added one
by one, in the order of the array; more are added in parts, whose number is the machine's business.
"""


def is_exact(function: str, kind: np.dtype) -> bool:
    """Whether every element of the function, of operands of that type, has one possible result."""
    if kind.kind == "c":
        return function in _EXACT_COMPLEX
    return function not in _ELEMENTARY and kind != np.float16


def is_blockwise(function: str, kind: np.dtype) -> bool:
    """Whether it is an elementary function of one number, which small arrays have from a program
    that computes a block of numbers.
    """
    single, double = np.dtype(np.float32), np.dtype(np.float64)
    return function in _ELEMENTARY - {"atan2", "pow"} and kind in (single, double)


def is_exact_cast(before: np.dtype, after: np.dtype) -> bool:
    """Half precision is rounded once by one machine, and twice by another."""
    return after != np.float16 or before == np.float16 or before.kind == "b"


def is_summed_in_order(shape: Sequence[int], kind: np.dtype) -> bool:
    """Of a sum or product of all elements of such an array, or of some; integers have no order."""
    if kind.kind not in "fc":
        return True
    return kind != np.float16 and size(shape) <= MOST_SUMMED


def is_multiplied_in_order(shape: Sequence[int], terms: int, kind: np.dtype) -> bool:
    """Of a product of matrices of that shape, each element a sum of so many terms."""
    if kind.kind not in "fc":
        return True
    return kind != np.float16 and size(shape) * terms <= MOST_MULTIPLIED


def size(shape: Sequence[int]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count
