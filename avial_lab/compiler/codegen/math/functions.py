"""Which elementary functions have code of their own.

Name of an operation -> what writes it.
"""

from __future__ import annotations

from collections.abc import Callable

from avial_lab.compiler.codegen.math.error_function import erf
from avial_lab.compiler.codegen.math.exponential import exp, exp2, expm1
from avial_lab.compiler.codegen.math.floats import Real
from avial_lab.compiler.codegen.math.hyperbolic import cosh, sinh, tanh
from avial_lab.compiler.codegen.math.inverse_trigonometric import acos, asin, atan, atan2
from avial_lab.compiler.codegen.math.logarithm import log, log1p, log2, log10
from avial_lab.compiler.codegen.math.power import powf
from avial_lab.compiler.codegen.math.root import cbrt
from avial_lab.compiler.codegen.math.trigonometric import (
    LIMIT,
    cos,
    cos_far,
    sin,
    sin_far,
    tan,
    tan_far,
)

FUNCTIONS: dict[str, Callable[..., Real]] = {
    "math.exp": exp,
    "math.exp2": exp2,
    "math.expm1": expm1,
    "math.log": log,
    "math.log2": log2,
    "math.log10": log10,
    "math.log1p": log1p,
    "math.erf": erf,
    "math.tanh": tanh,
    "math.sin": sin,
    "math.cos": cos,
    "math.tan": tan,
    "math.powf": powf,
    "math.atan": atan,
    "math.atan2": atan2,
    "math.asin": asin,
    "math.acos": acos,
    "math.sinh": sinh,
    "math.cosh": cosh,
    "math.cbrt": cbrt,
}

LIMITS: dict[str, dict[int, float]] = {"math.sin": LIMIT, "math.cos": LIMIT, "math.tan": LIMIT}
"""Of those that have other code beyond some size of the argument, by its bits."""

FAR: dict[str, Callable[[Real], Real]] = {
    "math.sin": sin_far,
    "math.cos": cos_far,
    "math.tan": tan_far,
}
"""That code, of one number."""
