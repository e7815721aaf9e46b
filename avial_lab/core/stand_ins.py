"""Arrays whose values are not in this process's memory, as a program's arrays.

Shape, element type -> an array that has these, and no values.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np

from avial_lab.core.errors import BindError

if TYPE_CHECKING:
    from typing_extensions import Self


class StandIn(np.ndarray):
    """Stands for the array `given`. Its memory is address space of the host's that no value is in;
    what asks for values is refused.
    """

    given: Any
    where = "elsewhere"

    @classmethod
    def of(cls, given: Any) -> Self:  # noqa: ANN401 - as the subclass says
        """given: has shape, dtype, nbytes and read_only."""
        flat = np.frombuffer(mmap.mmap(-1, max(given.nbytes, 1), flags=_LAZY), np.uint8)
        array = flat[: given.nbytes].view(given.dtype).reshape(given.shape).view(cls)
        array.given = given
        array.flags.writeable = not given.read_only
        return array

    def __repr__(self) -> str:
        return repr(self.given)

    __str__ = __repr__

    def __reduce__(self) -> NoReturn:
        self._refuse()

    def __getitem__(self, _: object) -> NoReturn:
        self._refuse()

    def __setitem__(self, _: object, value: object) -> NoReturn:
        self._refuse()

    def __array_ufunc__(self, *_: object, **__: object) -> NoReturn:
        self._refuse()

    def __array_function__(self, *_: object, **__: object) -> NoReturn:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise BindError(
            f"the values are {self.where}: this stands for {self.given!r}",
            hint="use the array that was passed: the results are in it",
        )


_LAZY = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)


class Lent(Protocol):
    """An array that lies on ranks, for the programs that it is passed to. owner: the array."""

    @property
    def owner(self) -> object: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def ranks(self) -> int: ...

    def lies_on(self, place: object) -> bool:
        """Whether these are the ranks of that cluster."""
        ...

    def values(self) -> np.ndarray:
        """A copy, here."""
        ...

    def run(self, program: Any, arrays: Mapping[str, np.ndarray], **how: Any) -> Any:  # noqa: ANN401
        """The trace of a run of the program on these arrays, in place. how: its options, time
        limit, places in the source, and who is told.
        """
        ...


class OnRanks(StandIn):
    """Stands for an array that lies on ranks."""

    given: Lent
    where = "on the ranks"
