"""What was tuned before, found again and used."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from avial_lab.artifact.explanation import Choice
from avial_lab.compiler.options import tuning_key
from avial_lab.compiler.requests import Build
from avial_lab.core.cache import digest, fingerprint, spelled
from avial_lab.planning.schedule import Schedule

# What tuning found --------------------------------------------------------------------------------


def tuning_key_of(question: Build) -> str:
    """What the best choice depends on: the program, its arrays' shapes and types and its whole
    numbers, its arithmetic, the compiler and the machine.
    """
    source = question.source
    numbers = {k: v for k, v in source.scalars.items() if not isinstance(v, float)}
    program = (source.text, source.function, source.binding, tuple(sorted(numbers.items())))
    return digest(
        "tuned",
        repr(fingerprint()),
        spelled(program),
        tuning_key(question.options),
    )


def profile_key_of(question: Build, schedule: Schedule, threads: int | None) -> str:
    """What the times of its tasks depend on: program, sizes, passes, who runs where, threads, and
    the machine with our own version.
    """
    source = question.source
    program = (source.text, source.function, source.binding, tuple(sorted(source.scalars.items())))
    placed = tuple((each.task, each.device, each.rank) for each in schedule.placements)
    how = (question.options.settled, placed, schedule.topology.ranks, threads)
    return digest("profile", repr(fingerprint()), spelled(program), spelled(how))


def family_key_of(question: Build, schedule: Schedule, threads: int | None) -> str:
    """The same but for sizes: extents of arrays, and numbers that are the same as one of them or
    constants of loops.
    """
    source = question.source
    buffers = () if source.binding is None else source.binding.buffers
    extents = {str(extent) for buffer in buffers for extent in buffer.shape}
    program = (
        without_sizes(source.text, extents), source.function,
        _NUMBER.sub("#", spelled(source.binding)), tuple(sorted(source.scalars)),
    )  # fmt: skip
    placed = tuple((each.task, each.device, each.rank) for each in schedule.placements)
    how = (question.options.settled, placed, schedule.topology.ranks, threads)
    return digest("sizes", repr(fingerprint()), spelled(program), spelled(how))


_NUMBER = re.compile(r"(?<![\w.%#$@])\d+(?![\w.])|(?<![\w.%#$@])\d+(?=x)|(?<=\dx)\d+(?=x)")
_SIZED = re.compile(r"<((?:\d+x)+)|arith\.constant (\d+) : index")


def without_sizes(text: str, extents: Iterable[str] = ()) -> str:
    """Without those that types and constants of indices have, and without `extents`.

    >>> without_sizes("%n = arith.constant 7 : index // %1 = f(%A, 7, 3) : memref<20x7xf64>, 20")
    '%n = arith.constant # : index // %1 = f(%A, #, 3) : memref<#x#xf64>, #'
    """
    found = _SIZED.findall(text)
    sizes = {size for shape, _ in found for size in shape.split("x")} | {c for _, c in found}
    sizes |= set(extents)
    return _NUMBER.sub(lambda each: "#" if each[0] in sizes else each[0], text)


def with_choice(question: Build, choice: Choice) -> Build:
    options = question.options.changed(without=choice.without, sizes=choice.sizes)
    return replace(question, options=options)
