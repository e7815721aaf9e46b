"""Errors of ours that are one of Python's, too: an IndexError at the line of a Python function is
caught by `except IndexError`, and by `except avial_lab.AvialError`.
"""

from __future__ import annotations

from avial_lab.core.errors import AvialError, CellSpan, VerifyError


class HangsOnTheIteration(VerifyError):
    """What has a meaning only where a loop's variable is known: a size, which array a name has."""


_MADE: dict[type[Exception], type[VerifyError]] = {}


def error_of(kind: type[Exception] | None) -> type[VerifyError]:
    """The class that is both; of the same name.

    >>> error_of(IndexError).__mro__[1:3] == (VerifyError, AvialError)
    True
    >>> issubclass(error_of(ZeroDivisionError), ArithmeticError)
    True
    """
    if kind is None:
        return VerifyError
    if issubclass(kind, VerifyError):
        return kind
    if kind not in _MADE:
        _MADE[kind] = type(kind.__name__, (VerifyError, kind), {"__reduce__": _reduced})
    return _MADE[kind]


def _reduced(error: AvialError) -> tuple[object, ...]:
    """How it travels between processes: by the name of Python's own."""
    kind = next(each for each in type(error).__mro__ if each.__module__ == "builtins")
    return _again, (kind, error.message, error.span, error.hint)


def _again(
    kind: type[Exception], message: str, span: CellSpan | None, hint: str | None
) -> VerifyError:
    return error_of(kind)(message, span=span, hint=hint)
