"""What was tuned before, found again and used."""

from __future__ import annotations

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


def with_choice(question: Build, choice: Choice) -> Build:
    options = question.options.changed(without=choice.without, sizes=choice.sizes)
    return replace(question, options=options)
