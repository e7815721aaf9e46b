"""Broken programs are answered: compiled, or refused in a few lines. No fault of ours, no crash, no
exception that is not an AvialError, no page of text.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import avial_lab
from avial_lab.core.errors import (
    MOST,
    AvialError,
    CompilerCrash,
    FaultWarning,
    InternalError,
)
from tests.hostile.mutations import WRONG, Program, mutant, valid_programs

TIME_LIMIT_S = 120
"""Of one program, on a machine that others use too: what goes on for ever is found."""

QUICK, ALL = 40, 1000


def answer(program: Program) -> str:
    """What becomes of it: `compiled`, or the error's text. Fails where it is a fault of ours."""
    options = {"cell": "In [4]", "timeout": TIME_LIMIT_S} | program.options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", FaultWarning)
        try:
            avial_lab.compile(
                program.text, arrays=program.arrays, scalars=program.scalars, **options
            )
        except (InternalError, CompilerCrash):
            raise
        except AvialError as error:
            said = str(error)
        else:
            said = "compiled"
    assert len(said) <= MOST
    return said


@pytest.mark.parametrize(
    "seed", [pytest.param(k, marks=pytest.mark.slow if k >= QUICK else ()) for k in range(ALL)]
)
def test_a_mutant_is_answered(seed: int) -> None:
    answer(mutant(seed))


@pytest.mark.parametrize(
    ("option", "wrong"),
    [
        pytest.param(option, wrong, id=f"{option} {number}")
        for option, values in WRONG.items()
        for number, wrong in enumerate(values)
    ],
)
def test_a_wrong_option_is_answered(option: str, wrong: object) -> None:
    text = "func.func @f(%a: memref<3xf64>) {\n  return\n}"
    arrays = {"a": np.zeros(3)}
    given = {"arrays": arrays, "scalars": {}}
    if option in given:
        given[option] = wrong  # type: ignore[assignment]
        answer(Program(option, text, **given))  # type: ignore[arg-type]
    else:
        answer(Program(option, text, **given, options={option: wrong}))


def test_what_is_broken_was_right() -> None:
    """Most mutants begin as programs that compile; a sample of them, to see that it is so."""
    some = valid_programs()[::17]
    assert len(some) >= 8
    said = {program.name: answer(program) for program in some}
    wrong = {name: text for name, text in said.items() if text != "compiled"}
    assert len(wrong) <= len(some) // 4, wrong
