"""Drawn functions mean what Python means, to the bit; or they are refused."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import avial_lab
from avial_lab.core.errors import AvialError, VerifyError
from tests.compiler.frontends.python.comparing import compare, same, translated
from tests.compiler.frontends.python.drawn import Drawn, functions
from tests.quick import examples
from tests.witness import Undefined

RAISED = (ArithmeticError, LookupError, ValueError, TypeError, AssertionError, NameError)
"""What drawn functions raise."""

_SETTINGS = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def _try(drawn: Drawn) -> None:
    function, args = drawn.made(), tuple(drawn.arguments.values())
    with np.errstate(all="ignore"):
        try:
            function(*deepcopy(args))
        except OverflowError:
            return  # Python's integers have no end
        except RAISED:
            pass  # `compare` finds it again, and looks for the same
    try:
        translated(function, *args)
    except VerifyError:
        return  # refused, and says so
    try:
        compare(function, *args, kinds=False)
    except Undefined as error:
        # What NumPy makes of a float that is no integer of the type is the machine's.
        assert "as an integer" in str(error)  # noqa: PT017


# Without shrinking, which takes minutes: the slow tests shrink.
@settings(max_examples=25, derandomize=True, phases=[Phase.generate], **_SETTINGS)  # type: ignore[arg-type]
@given(functions())
def test_drawn_functions(drawn: Drawn) -> None:
    _try(drawn)


@pytest.mark.slow
@settings(max_examples=examples(1500), **_SETTINGS)  # type: ignore[arg-type]
@given(functions())
def test_many_drawn_functions(drawn: Drawn) -> None:
    _try(drawn)


@pytest.mark.slow
@settings(max_examples=examples(40), **_SETTINGS)  # type: ignore[arg-type]
@given(functions())
def test_drawn_functions_compiled(drawn: Drawn) -> None:
    function, args = drawn.made(), tuple(drawn.arguments.values())
    mine, theirs = deepcopy(args), deepcopy(args)
    with np.errstate(all="ignore"):
        wanted = raised = None
        try:
            wanted = function(*theirs)
        except OverflowError:
            return
        except RAISED as error:
            raised = error
        try:
            found = avial_lab.program(function, ranks=1, strict=True)(*mine)
        except AvialError as error:
            if type(error) is VerifyError:
                return
            if raised is None or not isinstance(error, _own(raised)):
                raise
            return
    assert raised is None
    same(found, wanted, kinds=False)
    for one, other in zip(mine, theirs, strict=True):
        same(one, other)


def _own(raised: Exception) -> type[BaseException]:
    """Python's own type of an exception, which NumPy may have made one of its own of."""
    return next(each for each in type(raised).__mro__ if each.__module__ == "builtins")
