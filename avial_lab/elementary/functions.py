"""Which elementary functions have code of their own.

Name of an operation -> what writes it.
"""

from __future__ import annotations

from collections.abc import Callable

from avial_lab.elementary.error_function import erf
from avial_lab.elementary.exponential import exp
from avial_lab.elementary.logarithm import log
from avial_lab.elementary.numbers import Real

FUNCTIONS: dict[str, Callable[[Real], Real]] = {
    "math.exp": exp,
    "math.log": log,
    "math.erf": erf,
}
