"""Speed-ups by hand: where more ranks stop paying, and the reason that is given."""

from __future__ import annotations

import pytest

from avial_lab.planning.scaling import Point, Scaling
from avial_lab.plot.run.scaling import scaling_svg


def _scaling(*points: Point) -> Scaling:
    return Scaling(points, "a test")


def _point(ranks: int, seconds: float, **more: float) -> Point:
    told = {"compute": 1.0, "waiting": 0.0, "balance": 1.0, "nbytes": 0, "messages": 0} | more
    return Point(ranks, seconds, most_waited="S2", **told)  # pyright: ignore[reportArgumentType]


def test_twice_as_fast_on_twice_as_many_always_pays() -> None:
    scaling = _scaling(*(_point(n, 8 / n) for n in (1, 2, 4)))
    assert scaling.stops_at is None
    assert scaling.best.ranks == 4
    assert scaling.efficiency(scaling.points[-1]) == pytest.approx(1)
    assert "pay up to the 4 ranks" in scaling.why


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"compute": 0.3, "waiting": 0.7, "nbytes": 800, "messages": 100}, "bound by latency"),
        ({"compute": 0.3, "waiting": 0.7, "nbytes": 1 << 30, "messages": 8}, "bound by bandwidth"),
        ({"compute": 0.4, "waiting": 0.6, "balance": 0.5}, "the ranks' parts are uneven"),
        ({"compute": 0.9, "balance": 0.5}, "the work is uneven"),
        ({"compute": 0.2, "waiting": 0.1}, "beginning phases takes longer"),
        ({"compute": 0.9}, "ranks share what the machine has"),
    ],
)
def test_it_says_why_they_stop(told: dict[str, float], reason: str) -> None:
    scaling = _scaling(_point(1, 8.0), _point(4, 7.5, **told))
    assert scaling.stops_at is scaling.points[0]
    assert reason in scaling.why


def test_ranks_that_share_cores_are_told_a_range() -> None:
    scaling = _scaling(_point(1, 8e-3), _point(4, 4e-3, least_s=1e-3))
    assert scaling.table.rows[1][1] == "1 ms to 4 ms"
    assert [point.took for point in scaling.points] == ["8 ms", "1 ms to 4 ms"]


def test_four_times_the_ranks_have_to_pay_twice() -> None:
    """1.15 for four times as many is less than 1.1 for each twice."""
    scaling = _scaling(_point(1, 1.15), _point(4, 1.0))
    assert scaling.stops_at is scaling.points[0]
    assert _scaling(_point(1, 1.15), _point(2, 1.0)).stops_at is None


def test_a_curve_has_every_point() -> None:
    picture = scaling_svg(_scaling(*(_point(n, 8 / n) for n in (1, 2, 4, 1024))))
    assert picture.count("<circle") == 4
    assert "1,024" in picture
    assert "nan" not in picture


def test_the_curve_of_one_point_is_drawn() -> None:
    assert "<circle" in scaling_svg(_scaling(_point(1, 1.0)))
