"""Where two values differ, field by field: what pytest prints where the `repr` of both is the same
few words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import islice

MOST = 20


def explained(left: object, right: object) -> list[str] | None:
    """Lines for `pytest_assertrepr_compare`; None where pytest's own say as much."""
    if not (_has_ours(left) and _has_ours(right)):
        return None
    lines = list(islice(differences(left, right), MOST))
    return [f"{_kind(left)} == {_kind(right)}", *lines] if lines else None


def differences(left: object, right: object, path: str = "") -> Iterator[str]:
    """`.tasks[3].span.line: 4 != 5` for every leaf that differs."""
    if left == right:
        return
    if type(left) is type(right) and is_dataclass(left):
        for each in fields(left):
            if each.compare:
                one, other = getattr(left, each.name), getattr(right, each.name)
                yield from differences(one, other, f"{path}.{each.name}")
    elif isinstance(left, Mapping) and isinstance(right, Mapping):
        for key in dict.fromkeys([*left, *right]):
            yield from differences(left.get(key), right.get(key), f"{path}[{key!r}]")
    elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
        if len(left) != len(right):
            yield f"{path or 'length'}: {len(left)} values, not {len(right)}"
        for k, (one, other) in enumerate(zip(left, right, strict=False)):
            yield from differences(one, other, f"{path}[{k}]")
    else:
        yield f"{path or 'value'}: {left!r} != {right!r}"


def _has_ours(value: object) -> bool:
    """Whether it is, or holds, one of our dataclasses."""
    if isinstance(value, list | tuple) and value and not hasattr(value, "_fields"):
        return _has_ours(value[0])
    return is_dataclass(value) and type(value).__module__.startswith("avial_lab.")


def _kind(value: object) -> str:
    return type(value).__name__
