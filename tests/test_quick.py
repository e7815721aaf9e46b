"""Of a long sweep `make test` runs the cases that its mark names."""

from __future__ import annotations

import pytest

from tests.quick import examples, mark_slow_cases


@pytest.mark.quick("x-1", "y-*")
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("letter", ["x", "y"])
def test_the_others_are_slow(number: int, letter: str, request: pytest.FixtureRequest) -> None:
    cases = _cases(request)
    slow = {case.callspec.id for case in cases if case.get_closest_marker("slow")}
    assert slow == {"x-2"}


def _cases(request: pytest.FixtureRequest) -> list[pytest.Function]:
    """All of this module's with parameters, collected anew."""
    parent = request.node.getparent(pytest.Module)
    return [
        c for c in parent.collect() if isinstance(c, pytest.Function) and hasattr(c, "callspec")
    ]


def test_a_pattern_that_names_nothing_is_refused(request: pytest.FixtureRequest) -> None:
    cases = _cases(request)
    mark_slow_cases(cases)
    cases[0].add_marker(pytest.mark.quick("3-*"))
    with pytest.raises(pytest.UsageError, match=r"no case's id matches quick's '3-\*'; ids: x-1"):
        mark_slow_cases(cases)


def test_a_quarter_is_drawn_of_any_number() -> None:
    assert {count: examples(count) for count in (1, 3, 8, 100)} in (
        {1: 1, 3: 1, 8: 2, 100: 25},
        {1: 1, 3: 3, 8: 8, 100: 100},
    )
