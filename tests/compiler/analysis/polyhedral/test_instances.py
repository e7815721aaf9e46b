"""Orders in fewer dimensions are the orders they were."""

from __future__ import annotations

import islpy as isl
from hypothesis import given
from hypothesis import strategies as st

from avial_lab.compiler.analysis.polyhedral.instances import shorter

MEMBERS = ("0", "1", "2", "i", "j", "i + 1", "i + j")


def times_of(members: list[list[str]]) -> isl.UnionMap:
    each = (f"S{k}[i, j] -> [{', '.join(of)}]" for k, of in enumerate(members))
    return isl.UnionMap(f"[n] -> {{ {'; '.join(each)} }}")


def comes_before(times: isl.UnionMap) -> isl.UnionMap:
    return times.lex_lt_union_map(times)


@given(
    st.integers(1, 5).flatmap(
        lambda length: st.lists(
            st.lists(st.sampled_from(MEMBERS), min_size=length, max_size=length),
            min_size=1,
            max_size=4,
        )
    )
)
def test_the_order_stays(members: list[list[str]]) -> None:
    times = times_of(members)
    short, kept = shorter(times)
    assert comes_before(short).is_equal(comes_before(times))
    assert all(len(kept) == each.dim(isl.dim_type.out) for each in maps_of(short))


def test_what_decides_nothing_goes() -> None:
    places = [["0", "i", "0", "i", "1", "j", "0"], ["0", "i", "0", "i", "2", "0", "0"]]
    _, kept = shorter(times_of(places))
    assert kept == (1, 4, 5)


def test_what_tells_apart_two_that_nothing_before_does_stays() -> None:
    _, kept = shorter(times_of([["i", "0", "j"], ["i", "j", "0"], ["i", "0", "1"]]))
    assert kept == (0, 1, 2)


def maps_of(times: isl.UnionMap) -> list[isl.Map]:
    found: list[isl.Map] = []
    times.foreach_map(found.append)
    return found
