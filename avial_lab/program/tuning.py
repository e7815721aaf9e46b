"""What is best here, measured: other sizes, or without some pass, around what the model chose.

A program for one rank, a budget of time -> Choice; and the Choices of earlier times, on disk.

    model's choice ──► half, double each size; leave a pass out ──► the best so far ──► again,
    by half as much         each against the best so far, in turn, copies of the arrays
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median

import numpy as np

from avial_lab.artifact.explanation import Choice, Tried
from avial_lab.compiler.catalogue import OPTIONAL, SIZES
from avial_lab.compiler.options import CompileOptions, sizes_text
from avial_lab.compiler.requests import Built
from avial_lab.core.cache import Cache
from avial_lab.core.errors import AvialError, ScheduleError
from avial_lab.core.files import cache_folder
from avial_lab.runtime.launch.trials import Trials
from avial_lab.runtime.rank.threads import Threads

TUNE = "search this many seconds for something faster than the model's choice, and remember it"
"""For those who ask on a command line."""

LONGEST_S = 24 * 3600.0
LEAST_GAIN = 0.02
"""Less than this is no reason to choose something else."""

FEWEST, MOST = 5, 21
"""Pairs of runs of two contestants."""

TURN_S = 0.5
"""Worth spending on a pair of contestants even if they are fast."""

RESERVE = 0.2
"""Of the budget, to hold the best against the model's choice once more."""

Builder = Callable[[CompileOptions], Built]


def checked_budget(seconds: float) -> float:
    """ScheduleError for what is no time to spend."""
    if not 0 < seconds <= LONGEST_S:
        raise ScheduleError(
            f"invalid tuning time: {seconds:g} s",
            hint=f"expected more than 0, up to {LONGEST_S:,.0f} s",
        )
    return float(seconds)


# -- what there is to try --------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """From some options to others: a size of a pass by a factor, or (without `size`) the pass away.

    The sizes it starts from are those that the pass took, by its remark.
    """

    name: str
    size: str = ""
    factor: float = 1.0

    def __call__(self, options: CompileOptions, built: Built) -> CompileOptions | None:
        """None where it leads nowhere."""
        if not options.keeps(self.name):
            return None
        given = dict(options.sizes)
        if not self.size:
            without = (*options.without, self.name)
            given.pop(self.name, None)
        else:
            without = options.without
            value = taken_sizes(built).get(self.name, {}).get(self.size)
            moved = None if value is None else self._moved(value)
            if moved is None or moved == value:
                return None
            given[self.name] = tuple((dict(given.get(self.name, ())) | {self.size: moved}).items())
        return options.changed(without=without, sizes=sizes_text(tuple(given.items())))

    def _moved(self, value: str) -> str | None:
        """None where it leaves the range."""
        form = SIZES[self.name][self.size]
        parts: list[str] = []
        for part in value.split("x"):
            number = round(int(part) * self.factor / form.multiple) * form.multiple
            if not form.least <= number <= form.most:
                return None
            parts.append(str(number))
        return "x".join(parts)


def candidates_for(built: Built) -> list[Candidate]:
    """The most promising first: sizes, then passes that did something, then finer steps."""
    sizes = [
        (name, size)
        for name, taken in taken_sizes(built).items()
        for size in taken
        if size in SIZES.get(name, {})
    ]
    names = {re.split(r"[{:]", line, maxsplit=1)[0] for line in _lines(built)}
    coarse = [Candidate(name, size, factor) for name, size in sizes for factor in (2.0, 0.5)]
    fine = [Candidate(name, size, factor) for name, size in sizes for factor in (1.5, 0.75)]
    away = [Candidate(name) for name in OPTIONAL if name in names]
    return [*coarse, *away, *fine]


def taken_sizes(built: Built) -> dict[str, dict[str, str]]:
    """For each pass with a remark on its sizes, what each was in its first remark."""
    found: dict[str, dict[str, str]] = {}
    for line in _lines(built):
        match = re.match(r"([\w-]+)\{([^}]*)\}: ", line)
        if match is not None:
            options = dict(option.split("=", 1) for option in match[2].split())
            found[match[1]] = options | found.get(match[1], {})
    return found


def _lines(built: Built) -> Iterator[str]:
    for report in built.reports:
        yield from report.done


# -- measuring -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contestant:
    options: CompileOptions
    built: Built
    number: int

    def described(self, model: CompileOptions) -> str:
        """What is other than the model has it."""
        words = [f"without {name}" for name in self.options.without if name not in model.without]
        return ", ".join([*filter(None, [self.options.sizes_text]), *words]) or "the model's choice"


@dataclass(frozen=True)
class Comparison:
    """`ratio`: how many times as fast as the other, the median of pairs of runs in turn; `noise` is
    about twice its standard error, from the pairs' median deviation.
    """

    seconds: float
    ratio: float
    noise: float

    @staticmethod
    def of(pairs: Sequence[tuple[float, float]]) -> Comparison:
        """Pairs of seconds, of the other and of our own.

        >>> Comparison.of([(2.0, 1.0), (2.2, 1.1), (1.8, 0.9)]).is_gain
        True
        >>> Comparison.of([(1.0, 1.1), (1.3, 1.0), (1.0, 0.97), (0.8, 1.0), (1.2, 1.0)]).is_gain
        False
        """
        ratios = [other / max(ours, 1e-9) for other, ours in pairs]
        middle = median(ratios)
        spread = median(abs(ratio - middle) for ratio in ratios)
        # 1.48: a normal distribution's deviation over its median one; 1.25: a median's over a mean.
        noise = 2 * 1.25 * 1.48 * spread / len(ratios) ** 0.5
        return Comparison(median(ours for _, ours in pairs), middle, noise)

    @property
    def is_gain(self) -> bool:
        return self.ratio - self.noise > 1 and self.ratio > 1 + LEAST_GAIN


@dataclass
class Search:
    """One search for `seconds`; `build` makes the program for one rank with such options."""

    build: Builder
    seconds: float
    threads: Threads
    clock: Callable[[], float] = time.monotonic

    def run(
        self, model: CompileOptions, arrays: Mapping[str, np.ndarray]
    ) -> tuple[Choice, Built, Trials]:
        """The choice, what was built for it, and the trials, whose last run was of it: the caller
        looks at what it left, and closes them.
        """
        start = self.clock()
        end = start + self.seconds
        trials = Trials(arrays, self.threads)
        try:
            first = self._enter(model, self.build(model), trials)
            best, tried = self._climb(first, trials, start + (1 - RESERVE) * self.seconds)
            ratio = 1.0
            if best is not first:
                pairs = self._pairs(trials, first, best, max(end, self.clock()))
                again = Comparison.of(pairs or [(1.0, 1.0)])
                best, ratio = (best, again.ratio) if again.is_gain else (first, 1.0)
            trials.run(best.number)
        except BaseException:
            trials.close()
            raise
        when = time.strftime("%Y-%m-%d")
        sizes, without = best.options.sizes_text, best.options.without
        choice = Choice(when, self.threads.count, ratio, sizes, without, tuple(tried))
        return choice, best.built, trials

    def _enter(self, options: CompileOptions, built: Built, trials: Trials) -> Contestant:
        made = Contestant(options, built, trials.add(built.binary))
        trials.run(made.number)  # what a first run costs more is nobody's
        return made

    def _climb(
        self, first: Contestant, trials: Trials, until: float
    ) -> tuple[Contestant, list[Tried]]:
        """The best of those that there was time for."""
        best, tried = first, list[Tried]()
        candidates, seen = candidates_for(first.built), {first.options}
        codes = {first.built.binary.shared_object}
        while candidates and self.clock() < until:
            candidate = candidates.pop(0)
            options = candidate(best.options, best.built)
            if options is None or options in seen:
                continue
            seen.add(options)
            built = self.build(options)
            if built.binary.shared_object in codes:
                continue
            codes.add(built.binary.shared_object)
            other = self._enter(options, built, trials)
            pairs = self._pairs(trials, best, other, until)
            if len(pairs) < FEWEST:
                break
            found = Comparison.of(pairs)
            if found.is_gain:  # chance is seldom lucky twice
                again = self._pairs(trials, best, other, until)
                if len(again) < FEWEST:
                    break
                found = min(found, Comparison.of(again), key=lambda each: each.ratio - each.noise)
            what = other.described(first.options)
            tried.append(Tried(what, found.seconds, found.ratio, found.noise, found.is_gain))
            if found.is_gain:
                best = other
                candidates.insert(0, candidate)  # and on in that direction
        return best, tried

    def _pairs(
        self, trials: Trials, one: Contestant, other: Contestant, until: float
    ) -> list[tuple[float, float]]:
        """Seconds of both, in turn, as long as there is time."""
        pairs: list[tuple[float, float]] = []
        while len(pairs) < MOST and self.clock() < until:
            order = (one, other) if len(pairs) % 2 else (other, one)
            seconds = {each.number: trials.run(each.number) for each in order}
            pairs.append((seconds[one.number], seconds[other.number]))
            if len(pairs) >= FEWEST and sum(map(sum, pairs)) >= TURN_S:
                break
        return pairs


# -- what is remembered ----------------------------------------------------------------------------


def remember(key: str, choice: Choice) -> None:
    """Keep it for the programs of that key; of two who write at once the later is kept, whole."""
    _kept().put(key, json.dumps(asdict(choice)).encode())


def remembered(key: str) -> Choice | None:
    """What was kept under the key; None where there is nothing that this version understands."""
    data = _kept().get(key)
    if data is None:
        return None
    try:
        facts = json.loads(data)
        tried = tuple(Tried(**each) for each in facts.pop("tried"))
        facts["without"] = tuple(facts["without"])
        choice = Choice(**facts, tried=tried)
        CompileOptions.of(without=choice.without, sizes=choice.sizes)
    except (ValueError, TypeError, KeyError, AvialError):
        return None
    return choice


def _kept() -> Cache:
    return Cache(cache_folder() / "tuned")
