"""How a run ended on each rank, and what that means to the caller.

A failed or dead rank -> RunError with its task, rank and cell line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from avial_lab.artifact.manifest import Manifest
from avial_lab.core.errors import CellSpan, RunError, RunInterrupted
from avial_lab.core.regions import Box
from avial_lab.core.words import brief, count, listed, rank_words
from avial_lab.machine.devices import CPU, kind_named, place_name
from avial_lab.planning.schedule import Piece, StepKind
from avial_lab.runtime.rank.clock import Times
from avial_lab.runtime.rank.output import ranks_text
from avial_lab.runtime.rank.threads import Team
from avial_lab.trace import Copy, Move

Spans = Mapping[str, CellSpan]
"""Each task's place in the cell, by its name."""

_ADDRESS = re.compile(r"0x[0-9a-f]+")

GRACE_S = 0.2
"""How long the other ranks may take to say that they failed as well, before all are ended."""


@dataclass(frozen=True)
class Failure:
    """What went wrong on a rank that could report it; `step` indexes its program, -1 before the
    first. `place`: the line and column that are at fault, where that is known better. device: the
    name of the one that failed.
    """

    message: str
    step: int = -1
    hint: str | None = None
    traceback: str = ""
    place: tuple[int, int] | None = None
    device: str = ""


def asserted(text: str, line: int, column: int, step: int) -> Failure:
    """An assertion of the program did not hold; line 0 where it has no place."""
    return Failure(
        f"{_ASSERTED}{text}",
        step=step,
        hint="give the program values for which it holds",
        place=(line, column) if line else None,
    )


_ASSERTED = "an assertion does not hold: "
_ASSERTION = re.compile(rf"^(\d+):(\d+): {_ASSERTED}(.*)", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """What one rank brings back.

    results: flat bytes of the rank's result `pieces`. moves: what it counted as sent. copies: to
    its devices and from them; taken_bytes: the most that it had taken there at once. touched_bytes:
    of its own arrays, what is in its memory at the end, whole pages. times: None
    where it did not come to its end. team: the threads it ran on. read: what was asked for of an
    array that stays, of what this rank holds of it: boxes and their flat bytes. way: how messages
    between devices went, where it drives any.
    """

    rank: int
    times: Times | None = None
    pieces: tuple[Piece, ...] = ()
    results: tuple[np.ndarray, ...] = ()
    moves: tuple[Move, ...] = ()
    copies: tuple[Copy, ...] = ()
    taken_bytes: tuple[tuple[str, int], ...] = ()
    touched_bytes: int = 0
    failure: Failure | None = None
    team: Team = field(default_factory=Team)
    read: tuple[tuple[Box, bytes], ...] = ()
    way: str = ""

    def __repr__(self) -> str:
        how = "done" if self.failure is None else self.failure.message
        return brief(self, f"of rank {self.rank}: {how}, {count(len(self.pieces), 'result')}")


def results_of(outcomes: Iterable[Outcome]) -> Iterator[tuple[Piece, np.ndarray]]:
    """Every result piece of every rank, with its flat bytes."""
    for outcome in outcomes:
        yield from zip(outcome.pieces, outcome.results, strict=True)


def ranks_failed(manifest: Manifest, failures: Mapping[int, Failure], spans: Spans) -> RunError:
    """The error for ranks that reported a failure, the first of them first; equal ones are one."""
    alike: dict[tuple[str, str], dict[int, Failure]] = {}
    for rank, failure in failures.items():
        place = _failed_at(manifest, rank, failure, spans)
        # MPI's words hold addresses, which are each rank's own.
        alike.setdefault((place, _ADDRESS.sub("", failure.message)), {})[rank] = failure
    lines = [
        f"{_ranks_words(list(those))} of {manifest.ranks} failed{place and f' {place}'}: "
        + next(iter(those.values())).message
        for (place, _), those in alike.items()
    ]
    rank, first = next(iter(failures.items()))
    lines += [first.traceback] if first.traceback else []  # only where nobody foresaw it
    return RunError(
        "\n".join(lines).rstrip(),
        span=_at(first.place, _span(manifest, rank, first.step, spans), spans),
        hint=first.hint,
    )


def _failed_at(manifest: Manifest, rank: int, failure: Failure, spans: Spans) -> str:
    """Where it was; of the program's own fault, which all ranks find alike, without the device, and
    nothing of what the program does not name.
    """
    here = manifest.at(rank, failure.step)
    if failure.place is not None:
        if here is None or here.task not in spans:
            return ""
        # One that stands between tasks is found after the task before it has begun.
        between = failure.message.startswith(_ASSERTED) and not _encloses(
            spans[here.task], failure.place
        )
        return "" if between else f"in task '{here.task}'"
    return describe_step(manifest, rank, failure.step, device=failure.device)


def _encloses(span: CellSpan, place: tuple[int, int]) -> bool:
    """Whether the place is within the braces that open behind the span's."""
    if place < (span.line, span.column):
        return False
    *before, line = ["", *span.text.splitlines()[: place[0]]]
    between = "\n".join([*before[span.line :], line[: place[1] - 1]])
    depth = 0
    for brace in re.findall(r"[{}]", between):
        depth += 1 if brace == "{" else -1
        if depth == 0:
            return False
    return depth > 0


def _at(place: tuple[int, int] | None, span: CellSpan | None, spans: Spans) -> CellSpan | None:
    """That place in the cell that `span` is in, and the others are."""
    if place is None:
        return span
    span = span or next(iter(spans.values()), None)
    if span is None:
        return None
    line, column = place
    return replace(span, line=line, column=column)


def _ranks_words(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks_text(ranks)}"


def rank_died(
    manifest: Manifest,
    rank: int,
    step: int | None,
    death: str | None,
    spans: Spans,
    *,
    said: str = "",
) -> RunError:
    """The error for a rank that is gone; `step` and `death` where they are known. said: the last
    that it printed; an assertion that could not be told otherwise is there.
    """
    how = f"died of {death}" if death else "died"
    step = -1 if step is None else step
    told = [*_ASSERTION.finditer(said)] if death == "SIGABRT" else []
    if told:
        line, column, text = told[-1].groups()
        failure = asserted(text, int(line), int(column), step)
        return ranks_failed(manifest, {rank: failure}, spans)
    return RunError(
        f"rank {rank} of {manifest.ranks} {how} {describe_step(manifest, rank, step)}",
        span=_span(manifest, rank, step, spans),
        hint=DEATH_HINTS.get(death or "", "the engines' log may say more"),
    )


def timed_out(
    manifest: Manifest,
    seconds: float,
    steps: Mapping[int, int | None],
    spans: Spans,
    *,
    stopped: Collection[int] = (),
) -> RunError:
    """The error for a run past its time limit; `steps[rank]` is where each unfinished rank is, None
    if unknown. Ranks that are `stopped` are not at fault: somebody has suspended their processes.
    """
    lines = [
        f"  rank {rank} is {describe_step(manifest, rank, step)}" if step is not None else
        f"  rank {rank} does not report"
        for rank, step in steps.items()
    ]  # fmt: skip
    if stopped:
        suspended = (
            f"{rank_words(stopped)} {'is' if len(stopped) == 1 else 'are'} stopped (SIGSTOP)"
        )
        return RunError(
            "\n".join([f"the run did not finish within {seconds:g} s: {suspended}", *lines]),
            hint="a debugger, `kill -STOP` or job control suspended it; `kill -CONT` lets it go on",
        )
    # A rank inside a task is the likely culprit: the others wait for it.
    busy = ((r, s) for r, s in steps.items() if s is not None and _is_task(manifest, r, s))
    rank, step = next(busy, (0, -1))
    return RunError(
        "\n".join([f"the run did not finish within {seconds:g} s", *lines]),
        span=_span(manifest, rank, step, spans),
        hint=ENDLESS_HINT,
    )


ENDLESS_HINT = "raise timeout=…, or look for a loop that does not terminate"


def describe_step(manifest: Manifest, rank: int, step: int, *, device: str = "") -> str:
    """Where a rank is, to follow a verb: `in task 'mul' on cpu1`, `receiving c[0:20] from rank
    0 (of task 'add')`, `copying c[0:20] from cpu1 to gpu0 (for task 'mul')`. device: that
    of a task, where it is known.
    """
    here = manifest.at(rank, step)
    if here is None:
        return "before its first task"
    if here.kind is StepKind.RUN:
        devices = [device] if device else manifest.devices_of(here.task, rank)
        emulated = kind_named(manifest.kinds.get(devices[0], CPU.name)).emulated
        return f"in task '{here.task}' on {listed(devices)}{' (emulated)' * emulated}"
    copy = manifest.copy(here)
    if copy is not None:
        source, dest = (place_name(place, manifest.ranks) for place in (copy.source, copy.dest))
        why = f"for task '{copy.task}'" if copy.task else "a result"
        return f"copying {copy.storage}{copy.box} from {source} to {dest} ({why})"
    transfer = manifest.message(here)
    if transfer is None:
        return "at a barrier"
    what = f"{transfer.storage}{transfer.box}"
    if here.kind in (StepKind.SEND, StepKind.WAIT_SENT):
        return f"sending {what} to rank {transfer.dest} (for task '{transfer.consumer}')"
    return f"receiving {what} from rank {transfer.source} (of task '{transfer.producer}')"


MEMORY = "SIGKILL: memory ran out"
"""The death of a rank that the system ended so that others could go on."""

DEATH_HINTS = {
    MEMORY: "use smaller arrays, more machines, or fewer ranks per machine",
    "SIGSEGV": "usually an index out of bounds; run with --check to find it",
    "SIGBUS": "usually an index out of bounds, or /dev/shm is full",
    "SIGFPE": "usually an integer division by zero",
    "SIGABRT": "an assertion of the program failed, or the C library or MPI stopped the process: "
    "what the ranks printed last, or the engines' log, says which",
    "SIGKILL": "usually memory ran out: use smaller arrays or fewer ranks; else a user or a limit "
    "of the machine ended it",
    "SIGILL": "the program was built for another CPU; compile it on, or for, the engine's machine",
}


def interrupted(
    manifest: Manifest, elapsed_s: float, steps: Mapping[int, int | None], *, then: str = ""
) -> RunInterrupted:
    """The end of a run by Ctrl-C; `steps` as in `timed_out`, `then` is what happens now."""
    lines = [
        f"  rank {rank} was {describe_step(manifest, rank, -1 if step is None else step)}"
        for rank, step in steps.items()
    ]
    head = f"the run was stopped after {elapsed_s:.1f} s; the arrays are as they were before it"
    head += f"; {then}" if then else ""
    return RunInterrupted("\n".join([head, *lines]))


def _is_task(manifest: Manifest, rank: int, step: int) -> bool:
    here = manifest.at(rank, step)
    return here is not None and here.kind is StepKind.RUN


def _span(manifest: Manifest, rank: int, step: int, spans: Spans) -> CellSpan | None:
    here = manifest.at(rank, step)
    if here is None:
        return None
    transfer, copy = manifest.message(here), manifest.copy(here)
    if copy is not None:
        late = copy.source >= manifest.ranks  # what it waits for may have failed
        return spans.get(_task_before(manifest, rank, step) if late else copy.task)
    return spans.get(here.task if transfer is None else transfer.consumer)


def _task_before(manifest: Manifest, rank: int, step: int) -> str:
    """The last task that the rank has begun; a device may still be at it."""
    before = (manifest.at(rank, mark) for mark in range(step - 1, -1, -1))
    return next((s.task for s in before if s is not None and s.kind is StepKind.RUN), "")
