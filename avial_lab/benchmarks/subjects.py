"""The programs that passes are timed on: the kernels, and the functions of tests/foreign.

Names, a data size -> Subjects: a program to compile, its arguments, and whether a run is right.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from avial_lab.benchmarks.c_peers import peer_folder
from avial_lab.benchmarks.kernel_suite import (
    KernelProgram,
    element_of,
    kernel_names,
    kernel_program,
)
from avial_lab.benchmarks.verification import Answer
from avial_lab.compiler.options import MODEL
from avial_lab.core.element_types import element_of_dtype
from avial_lab.core.errors import AvialError, BindError
from avial_lab.program import compilation
from avial_lab.program.agreement import agreement
from avial_lab.program.program import Program

FOREIGN = Path(__file__).parents[2] / "tests" / "foreign"
"""Functions as other compilers write them; they come with the repository alone."""

_ROWS = {"MINI": 100, "SMALL": 1_000, "MEDIUM": 10_000, "LARGE": 100_000, "EXTRALARGE": 1_000_000}
"""How many rows the functions of tests/foreign that take any number get, by PolyBench's sizes."""

_TESTED = 13
"""What they are tested with; others may not take more."""

Check = Callable[[Program, Mapping[str, np.ndarray]], None]


@dataclass(frozen=True)
class Subject:
    """One program with its arguments, `before`, in the function's order. `check` raises CheckError
    for arrays that a run of the program given may not leave. `places` are added to sys.path where
    it runs.
    """

    name: str
    element: str
    text: str = field(repr=False)
    before: Mapping[str, Any] = field(repr=False)
    check: Check = field(repr=False)
    function: str | None = None
    places: tuple[str, ...] = ()

    def compiled(self, ranks: int, without: str = "") -> Program:
        """On the model's sizes, whatever tuning found. AvialError where a fault of ours made it
        another program, without more passes than that.
        """
        arrays = {k: v.copy() for k, v in self.before.items() if isinstance(v, np.ndarray)}
        numbers = {
            k: v.item() if isinstance(v, np.generic) else v
            for k, v in self.before.items()
            if not isinstance(v, np.ndarray)
        }
        compiled = compilation.compile(
            self.text,
            arrays=arrays,
            scalars=numbers,
            function=self.function,
            ranks=ranks,
            without=without,
            sizes=MODEL,
            name=self.name,
        )
        if compiled.built.fault:
            raise AvialError(compiled.built.fault)
        return compiled


def subject_names(asked: Sequence[str], *, foreign: Path = FOREIGN) -> tuple[str, ...]:
    """The names of these programs, or of all there are: kernels, then functions of tests/foreign.

    BindError for a name that is neither.
    """
    there = (*kernel_names(), *foreign_names(foreign))
    for name in asked:
        if name not in there:
            near = get_close_matches(name, there, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(there)}"
            raise BindError(f"there is no kernel '{name}'", hint=hint)
    if not there:
        raise BindError(
            "there are no kernels to time passes on",
            hint="kernels come with the repository, not with the installed package",
        )
    return tuple(dict.fromkeys(asked)) or there


def foreign_names(folder: Path = FOREIGN) -> tuple[str, ...]:
    """As `foreign/argmin`; none where the repository's tests are not there."""
    if not (folder / "cases.py").is_file():
        return ()
    return tuple(f"foreign/{path.stem}" for path in sorted(folder.glob("*.mlir")))


def subject(name: str, size: str, elements: Sequence[str], *, foreign: Path = FOREIGN) -> Subject:
    """The program of that name at one of PolyBench's sizes; a kernel with the first of `elements`
    that it has a version of, or with its own first.
    """
    if name.startswith("foreign/"):
        return _foreign(name, size, foreign)
    return _kernel(kernel_program(name, size=size, element=element_of(name, elements)))


def _kernel(start: KernelProgram) -> Subject:
    answer = Answer(start)
    return Subject(
        start.kernel.name,
        start.element,
        start.text,
        start.before,
        lambda _, arrays: answer.check(arrays),
        start.function,
        (str(peer_folder(start.kernel).parent.parent),),
    )


def _foreign(name: str, size: str, folder: Path) -> Subject:
    """With many rows where its text leaves their number open, and else as it is tested."""
    cases, stem = _cases(folder), name.removeprefix("foreign/")
    text: str = cases.text_of(stem)
    dtype, make = cases.CASES[stem]
    element = element_of_dtype(np.dtype(dtype))
    assert element is not None
    arrays, numbers = make(cases.Draw(0, dtype), _ROWS[size] if "memref<?" in text else _TESTED)
    return Subject(name, element.name, text, {**arrays, **numbers}, _equals_reference)


def _equals_reference(compiled: Program, arrays: Mapping[str, np.ndarray]) -> None:
    expected = compiled.reference().data
    agreement(compiled.graph.storages, arrays, expected, compiled.built.reordered)


def _cases(folder: Path) -> ModuleType:
    """What tests/foreign calls its functions with."""
    name = "avial_lab_foreign_cases"  # `tests` may be anybody's
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, folder / "cases.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


def compile_seconds(compiled: Program, passes: Sequence[str]) -> dict[str, float]:
    """What each of these passes took, as it is watched, in all the places where it stands."""
    seconds = dict.fromkeys(passes, 0.0)
    for stage in compiled.inside.stages:
        for step in stage.passes:
            name = step.name.partition("{")[0]
            if name in seconds:
                seconds[name] += step.seconds
    return seconds
