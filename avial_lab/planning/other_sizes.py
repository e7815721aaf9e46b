"""What a program took at other sizes: how far off the model was there, for a size that never ran.

Seconds measured and modelled of each task or phase, by size -> seconds of the same at another size.

A task or phase of a small size takes some µs more for code and page tables that are in no cache,
once in a run: they do not grow with the size. What is left beyond them is taken to.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import cast

from avial_lab.core.cache import Cache
from avial_lab.core.files import cache_folder
from avial_lab.machine.constants import FIRST_TIME_S

Place = tuple[str, str]
"""A task or phase, and the device."""

MOST_SIZES = 16
"""That are remembered of a program: the last ones."""


class OtherSizes:
    """`family` names the program without its sizes, and all else that times depend on."""

    def __init__(self, family: str) -> None:
        self._family = family

    def remember(
        self, size: str, taken: Mapping[Place, float], modelled: Mapping[Place, float]
    ) -> None:
        """Seconds of the program that `size` names, measured and as the model has them."""
        rows = [
            [*place, seconds, modelled[place]]
            for place, seconds in taken.items()
            if seconds > 0 and modelled.get(place, 0) > 0
        ]
        if not rows:
            return
        known = {key: value for key, value in self._stored().items() if key != size} | {size: rows}
        last = dict(list(known.items())[-MOST_SIZES:])
        self._store().put(self._family, json.dumps(last).encode())

    def seconds(self, size: str, modelled: Mapping[Place, float]) -> dict[Place, float]:
        """The model times what it was off by at the size whose seconds were nearest, but for what a
        run takes more for its first time; of what ran at another size than `size` alone.
        """
        known: dict[Place, list[tuple[float, float]]] = {}
        for other, rows in self._stored().items():
            for name, device, taken, said in rows if other != size else ():
                known.setdefault((name, device), []).append((taken, said))
        found: dict[Place, float] = {}
        for place, now in modelled.items():
            if place in known and now > 0:
                taken, said = min(known[place], key=lambda each: abs(math.log(each[1] / now)))
                first_s = min(max(taken - said, 0.0), FIRST_TIME_S)
                found[place] = now * (taken - first_s) / said + first_s
        return found

    def _stored(self) -> dict[str, list[tuple[str, str, float, float]]]:
        data = self._store().get(self._family)
        try:
            told = cast(
                "dict[str, list[list[float]]]", json.loads(data) if data is not None else {}
            )
            return {
                str(size): [
                    (str(name), str(device), float(taken), float(said))
                    for name, device, taken, said in rows
                    if taken > 0 and said > 0
                ]
                for size, rows in told.items()
            }
        except (ValueError, TypeError, AttributeError):
            return {}

    @staticmethod
    def _store() -> Cache:
        return Cache(cache_folder() / "profile-sizes")
