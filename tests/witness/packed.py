"""Many random programs in one module: a module costs half a second to compile, a program in it a
twentieth of that.

Each is a body of statements with arrays and results of its own, of one function or as the tasks of
one schedule. Where the module differs, its programs are tried one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from string import ascii_lowercase

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.witness.drawn.body import Body
from tests.witness.drawn.programs import BODIES, IN_TASKS, Drawn, Maker, function_of, schedule_of
from tests.witness.values import Undefined

_NAMES = ["".join(pair) for pair in product(ascii_lowercase, repeat=2)]
"""Of bodies; of one length, so that no value of one has a name of another's."""


@dataclass(frozen=True)
class Packed:
    """`make` puts the bodies into one program."""

    bodies: tuple[Body, ...]
    make: Callable[[Sequence[Body]], Drawn]

    @property
    def whole(self) -> Drawn:
        return self.make(self.bodies)

    def apart(self) -> list[Drawn]:
        """Each by itself."""
        return [self.make([body]) for body in self.bodies]


def packed(name: str, count: int, *, tasks: bool) -> Packed:
    """So many programs; always the same of one name."""
    arch = "gpu" if _hash_of(name) % 2 else "cpu"
    return Packed(
        tuple(_drawn(name, count, IN_TASKS if tasks else BODIES)),
        (lambda bodies: schedule_of(bodies, arch)) if tasks else function_of,
    )


def _hash_of(name: str) -> int:
    """The same in every process, which Python's own is not."""
    return sum(ord(letter) * (k + 1) for k, letter in enumerate(name))


def _drawn(name: str, count: int, makers: Sequence[Maker]) -> list[Body]:
    """Hypothesis begins with simple ones and draws some twice."""
    found: dict[str, Body] = {}

    @st.composite
    def body(draw: st.DrawFn) -> Body:
        return draw(st.sampled_from(makers))(draw, _NAMES[len(found)])

    @seed(name)
    @settings(
        max_examples=2 * count, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large,
                               HealthCheck.filter_too_much],
    )  # fmt: skip
    @given(drawn=body())
    def draw(drawn: Body) -> None:
        if len(found) < count:
            found.setdefault("\n".join(drawn.lines).replace(_NAMES[len(found)], ""), drawn)

    draw()
    return list(found.values())


def first_difference(program: Packed, differs: Callable[[Drawn], str]) -> tuple[str, Drawn] | None:
    """What `differs` says of it, "" where nothing does, and of which program: of one alone, where
    that differs, too. A program that is undefined is left out.
    """
    try:
        said = differs(program.whole)
    except Undefined:
        said = "undefined"
    if not said:
        return None
    for each in program.apart():
        try:
            alone = differs(each)
        except Undefined:
            continue
        if alone:
            return alone, each
    return None if said == "undefined" else (said, program.whole)
