"""Ranges have room for what they say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from avial_lab.compiler.analysis.polyhedral.affine import Affine
from avial_lab.compiler.analysis.polyhedral.ranges import Range

FACTORS = st.integers(-3, 3)
FORMS = st.builds(
    lambda constant, t, n: Affine(constant, (("t", t), ("n", n))),
    st.integers(-9, 9),
    FACTORS,
    FACTORS,
)


def value(form: Affine, names: dict[str, int]) -> int:
    return form.constant + sum(factor * names[name] for name, factor in form.terms)


def values(extent: Range, names: dict[str, int]) -> range:
    low = max(value(form, names) for form in extent.lows)
    return range(low, min(value(form, names) for form in extent.highs))


@given(
    lows=st.lists(FORMS, min_size=1, max_size=3),
    highs=st.lists(FORMS, min_size=1, max_size=3),
    ends=st.tuples(st.integers(-9, 9), st.integers(0, 9)),
    n=st.integers(-9, 9),
)
def test_over_several_values_of_a_name(
    lows: list[Affine], highs: list[Affine], ends: tuple[int, int], n: int
) -> None:
    """All that it has at any of them; at one alone that is all there is."""
    extent, (first, more) = Range(tuple(lows), tuple(highs)), ends
    each = [values(extent, {"t": t, "n": n}) for t in range(first, first + more + 1)]
    found = {value for inside in each for value in inside}
    over = values(extent.over("t", "first", "last"), {"first": first, "last": first + more, "n": n})
    assert found <= set(over)
    if not more:
        assert found == set(over)
