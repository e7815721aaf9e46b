"""Which of the caller's arrays share memory, and which forms of arrays are taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import numpy as np

from avial_lab.core.element_types import ELEMENT_OF_DTYPE
from avial_lab.core.errors import BindError


class _Memory:
    """Keeps the arrays alive as long as the view onto their memory lives."""

    def __init__(self, address: int, nbytes: int, owners: list[Any]) -> None:
        self.owners = owners
        self.__array_interface__ = {
            "version": 3, "typestr": "|u1", "shape": (nbytes,), "data": (address, False),
        }  # fmt: skip


def raw_bytes(address: int, nbytes: int, owners: list[Any]) -> np.ndarray:
    return np.asarray(_Memory(address, nbytes, owners))


def checked_array(name: str, array: object) -> np.ndarray:
    """`array`, which a program can work on in place; else BindError."""
    if not isinstance(array, np.ndarray):
        raise BindError(
            f"'{name}' is not a NumPy array, but {_with_article(type(array).__name__)}",
            hint=_way_to_an_array(name, array),
        )
    array = cast("np.ndarray[Any, Any]", array)
    if _is_masked(array):
        raise BindError(
            f"array '{name}' has a mask, which a program would ignore",
            hint=f"pass {name}.filled(…), or {name}.data for the values without the mask",
        )
    if not array.dtype.isnative:
        raise BindError(
            f"array '{name}' has dtype {array.dtype}, whose byte order is not this machine's",
            hint=f"pass a copy: {name}.astype({name}.dtype.newbyteorder('='))",
        )
    if array.dtype.name not in ELEMENT_OF_DTYPE:
        raise BindError(
            f"array '{name}' has dtype {array.dtype}, which has no MLIR element type",
            hint="use one of " + ", ".join(ELEMENT_OF_DTYPE),
        )
    if array.flags.writeable and _overlaps_itself(array):
        raise BindError(
            f"elements of array '{name}' overlap in memory",
            hint=f"pass a copy: {name}.copy()",
        )
    return array


def _is_masked(array: object) -> bool:
    return isinstance(array, np.ma.MaskedArray)


def _with_article(noun: str) -> str:
    """`noun` as a sentence has it.

    >>> _with_article("list"), _with_article("int"), _with_article("NoneType")
    ('a list', 'an int', 'None')
    """
    if noun == "NoneType":
        return "None"
    return f"{'an' if noun[0] in 'aeiouAEIOU' else 'a'} {noun}"


def _way_to_an_array(name: str, value: object) -> str:
    if isinstance(value, int | float | np.number | np.bool_):
        call = f"scalars={{'{name}': …}}"
        return f"a number is not a buffer: pass it as {call}, and leave it out of tasks"
    if isinstance(value, list | tuple) or hasattr(value, "__array__"):
        return f"make one first, {name} = numpy.array({name}); the results come back in it"
    return "buffers are NumPy arrays: numpy.zeros(20, 'float32'), for example"


def _overlaps_itself(array: np.ndarray) -> bool:
    """Whether two indices may be one element; a view of an ordinary array never is that."""
    extent = array.itemsize
    axes = sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1)
    for stride, length in axes:
        if stride < extent:
            return bool(array.size)
        extent += stride * (length - 1)
    return False


def span_of(arrays: Iterable[np.ndarray]) -> tuple[int, int]:
    """The lowest and one past the highest byte of any of the arrays."""
    bounds = [np.lib.array_utils.byte_bounds(array) for array in arrays]
    return min(low for low, _ in bounds), max(high for _, high in bounds)


def sharing_memory(arrays: Mapping[str, np.ndarray]) -> list[list[str]]:
    """The names in groups that share memory (transitively), each group in the order given.

    A group's memory is one stretch: what lies in its gaps belongs to it too.
    """
    order = {name: k for k, name in enumerate(arrays)}
    group_of: dict[str, list[str]] = {name: [name] for name in arrays}
    for one, other in _near(arrays):
        mine, others = group_of[one], group_of[other]
        if mine is not others and _overlap(arrays[one], arrays[other]):
            mine += others
            group_of.update(dict.fromkeys(others, mine))
    groups = list({id(group): group for group in group_of.values()}.values())
    groups.sort(key=lambda group: max(order[name] for name in group))
    groups = _without_gaps(arrays, groups)
    return [sorted(group, key=order.__getitem__) for group in groups]


def _near(arrays: Mapping[str, np.ndarray]) -> Iterator[tuple[str, str]]:
    """The pairs whose stretches of memory meet: each begins before the other ends."""
    stretches = [(*np.lib.array_utils.byte_bounds(array), name) for name, array in arrays.items()]
    open_ones: list[tuple[int, str]] = []
    for low, high, name in sorted(stretches):
        open_ones = [(end, other) for end, other in open_ones if end > low]
        for _, other in open_ones:
            yield other, name
        open_ones.append((high, name))


def _without_gaps(arrays: Mapping[str, np.ndarray], groups: list[list[str]]) -> list[list[str]]:
    """The groups, each of several joined with those between whose arrays it lies.

    >>> base = np.zeros((4, 6))
    >>> columns = {"a": base[:, 0:2], "b": base[:, 1:3], "c": base[:, 4:6]}
    >>> _without_gaps(columns, [["a", "b"], ["c"]]), _without_gaps(columns, [["a"], ["c"]])
    ([['a', 'b', 'c']], [['a'], ['c']])
    """
    if all(len(group) == 1 for group in groups):
        return groups
    result: list[list[str]] = []
    for group in groups:
        joined = group
        apart: list[list[str]] = []
        for other in result:
            near = len(joined) > 1 or len(other) > 1
            if near and _spans_meet(arrays, joined, other):
                joined = [*other, *joined]
            else:
                apart.append(other)
        result = [*apart, joined]
    return result if len(result) == len(groups) else _without_gaps(arrays, result)


def _spans_meet(arrays: Mapping[str, np.ndarray], one: list[str], other: list[str]) -> bool:
    (low, high), (first, last) = (span_of(arrays[name] for name in names) for names in (one, other))
    return max(low, first) < min(high, last)


def _overlap(a: np.ndarray, b: np.ndarray) -> bool:
    if a.size == 0 or b.size == 0 or not np.may_share_memory(a, b):
        return False
    try:
        # Exact, so that interleaved views (every other column) stay apart; hard cases count as
        # sharing.
        return np.shares_memory(a, b, max_work=cast("Any", 10_000))
    except np.exceptions.TooHardError:
        return True
