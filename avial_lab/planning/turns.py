"""What every rank does in a run of a program of loops, turn by turn, before it happens.

A plan's log (numbers) -> Turns: each time a phase is begun, who has which part of it, and the
messages. Loops repeat, so that turns name a Pattern, and equal patterns are kept once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from avial_lab.core.buffers import Storage
from avial_lab.core.runtime_constants import (
    COPY_WORDS,
    MESSAGE_WORDS,
    PATTERN_WORDS,
    SHARE_WORDS,
    MessageFlag,
    PatternFlag,
    PhaseKind,
)
from avial_lab.core.words import brief, count
from avial_lab.machine.devices import devices_between, place_name
from avial_lab.trace import Copy, Move


@dataclass(frozen=True, eq=False)
class Pattern:
    """A turn of a phase, or the messages that combine its partial results.

    shares: (n, SHARE_WORDS): place, ranges, iterations inside, below and above (inside is -1 where
    the part is not split for messages under way), work, bytes touched, bytes of the largest box.
    messages: (m, MESSAGE_WORDS): source, dest (places; -1: all other hosts), bytes, flags, array,
    count, low, high. copies: (c, COPY_WORDS): source, dest (places of one rank), bytes, array,
    whether it waits for a message of the phase. All as `avial_table` in `ownership.h` has them.
    """

    phase: int
    flags: int
    shares: np.ndarray
    messages: np.ndarray
    copies: np.ndarray

    @property
    def kind(self) -> PhaseKind:
        return PhaseKind(self.flags & 3)

    @property
    def places(self) -> np.ndarray:
        return self.shares[:, 0]

    @property
    def work(self) -> np.ndarray:
        """Of each share, in a unit of the phase's own."""
        return np.ascontiguousarray(self.shares[:, 5]).view(np.float64)

    @property
    def everywhere(self) -> bool:
        """Whether each place does all of it."""
        return self.kind is PhaseKind.EVERYWHERE

    @cached_property
    def collective(self) -> np.ndarray:
        """Of each message whether it is one of a rank to all others."""
        return (self.messages[:, 3] & MessageFlag.COLLECTIVE) != 0

    def __repr__(self) -> str:
        partial = " of partial results" if self.flags & PatternFlag.PARTIAL else ""
        messages = count(len(self.messages), "message")
        copies = f", {count(len(self.copies), 'copy')}" if len(self.copies) else ""
        return brief(self, f"{count(len(self.shares), 'share')}, {messages}{copies}{partial}")


@dataclass(frozen=True, eq=False)
class Turns:
    """A whole run. `words` are the patterns, one after the other; turns: (n, 4): phase, pattern,
    pattern of the partial results (-1: none), barriers after it. Where the plan is not `complete`
    control depends on data, and loops took `trips` turns for that. drivers: which rank drives each
    device; the k-th is place `ranks` + k. With devices the last of `phases` has no name: in it what
    they hold of the results is copied to the hosts.
    """

    ranks: int
    phases: tuple[str, ...]
    storages: tuple[Storage, ...]
    turns: np.ndarray
    words: np.ndarray
    complete: bool = True
    trips: int = 2
    drivers: tuple[int, ...] = ()

    @property
    def places(self) -> int:
        """The ranks' memories and the devices'."""
        return self.ranks + len(self.drivers)

    @cached_property
    def driver(self) -> np.ndarray:
        """The rank of each place."""
        return np.array([*range(self.ranks), *self.drivers])

    def __len__(self) -> int:
        return len(self.turns)

    def __repr__(self) -> str:
        patterns = count(len(self.patterns), "pattern")
        ranks = count(self.ranks, "rank")
        return brief(self, f"of {ranks}: {count(len(self), 'turn')} by {patterns}")

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        return tuple(self._patterns())

    def _patterns(self) -> Iterator[Pattern]:
        at = 0
        while at < len(self.words):
            head: list[int] = self.words[at : at + PATTERN_WORDS].tolist()
            phase, flags, shares, messages, copies = head
            at += PATTERN_WORDS
            middle = at + shares * SHARE_WORDS
            last = middle + messages * MESSAGE_WORDS
            end = last + copies * COPY_WORDS
            yield Pattern(
                phase % len(self.phases),  # the results (-1) are the last
                flags,
                self.words[at:middle].reshape(shares, SHARE_WORDS),
                self.words[middle:last].reshape(messages, MESSAGE_WORDS),
                self.words[last:end].reshape(copies, COPY_WORDS),
            )
            at = end

    @cached_property
    def times(self) -> np.ndarray:
        """How often each pattern comes."""
        used = self.turns[:, 1:3].ravel()
        return np.bincount(used[used >= 0], minlength=len(self.patterns))

    @property
    def begun(self) -> dict[str, int]:
        """How often each phase is begun, by its name."""
        numbers = np.bincount(self.turns[:, 0], minlength=len(self.phases)).tolist()
        return {name: k for name, k in zip(self.phases, numbers, strict=False) if k and name}

    @cached_property
    def sent(self) -> tuple[int, int]:
        """Messages and bytes that cross between ranks."""
        messages = nbytes = 0
        for pattern, times in zip(self.patterns, self.times.tolist(), strict=True):
            each = np.where(pattern.collective, self.ranks - 1, 1)
            messages += times * int(each.sum())
            nbytes += times * int((each * pattern.messages[:, 2]).sum())
        return messages, nbytes

    def moves(self) -> tuple[Move, ...]:
        """What goes from rank to rank, phase by phase; of n ranks up to n² for a phase."""
        found: dict[tuple[int, int, int], tuple[int, int]] = {}
        for pattern, times in zip(self.patterns, self.times.tolist(), strict=True):
            for source, dest, nbytes, *_ in pattern.messages.tolist():
                others = [d for d in range(self.ranks) if d != source] if dest < 0 else [dest]
                for each in others:
                    key = pattern.phase, source, each
                    number, total = found.get(key, (0, 0))
                    found[key] = number + times, total + times * nbytes
        driver = self.driver.tolist()
        return tuple(
            Move(
                self.phases[phase],
                driver[source],
                driver[dest],
                *amounts,
                devices_between(source, dest, self.ranks),
            )
            for (phase, source, dest), amounts in sorted(found.items())
        )

    def copies(self) -> tuple[Copy, ...]:
        """What goes between a rank's memory and its devices', phase by phase."""
        found: dict[tuple[int, int, int], tuple[int, int]] = {}
        for pattern, times in zip(self.patterns, self.times.tolist(), strict=True):
            for source, dest, nbytes, *_ in pattern.copies.tolist():
                key = pattern.phase, source, dest
                number, total = found.get(key, (0, 0))
                found[key] = number + times, total + times * nbytes
        return tuple(
            Copy(
                self.phases[phase],
                place_name(source, self.ranks),
                place_name(dest, self.ranks),
                *amounts,
            )
            for (phase, source, dest), amounts in sorted(found.items())
        )
