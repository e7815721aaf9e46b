"""Which optional passes a program is compiled with."""

import pytest

from avial_lab.effort import OPTIONAL, SIZES, Effort
from avial_lab.errors import PassError, ScheduleError
from avial_lab.pipelines import parse_passes


@pytest.mark.parametrize("without", ["all", "order-loops, all", OPTIONAL, ",".join(OPTIONAL)])
def test_passes_are_left_out_by_name(without):
    effort = Effort.of(without)
    assert effort.without == OPTIONAL
    assert not any(effort.keeps(name) for name in OPTIONAL)


def test_all_are_kept_where_none_is_named():
    assert all(Effort.of("").keeps(name) for name in OPTIONAL)


def test_an_unknown_pass_is_refused_with_those_that_are_there():
    with pytest.raises(ScheduleError, match="no optional pass is called 'inline'") as raised:
        Effort.of("inline")
    assert "order-loops" in str(raised.value)


def test_sizes_are_read_in_any_order_and_told_in_one():
    effort = Effort.of("", sizes=" tile-time{widths=8x16},block-loops{block=48 terms=7}")
    assert effort.told == "block-loops{terms=7 block=48},tile-time{widths=8x16}"
    assert effort == Effort.of("", sizes=effort.told)
    assert effort.options("block-loops") == {"terms": 7, "block": 48}
    assert effort.options("order-loops") == {}


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ("block-loops{terms=0}", "from 1 to 65,536"),
        ("block-loops{terms=-3}", "from 1 to 65,536"),
        ("block-loops{terms=65537}", "from 1 to 65,536"),
        ("block-loops{terms=many}", "from 1 to 65,536"),
        ("block-loops{block=9}", "from 8 to 8,192, a multiple of 8"),
        ("tile-time{widths=8}", "2 or 3 numbers as in 8x16, each from 1 to 65,536"),
        ("tile-time{widths=8x0}", "each from 1 to 65,536"),
        ("interleave-rows{rows=1}", "from 2 to 64"),
        ("block-loops{term=8}", "it has: terms, block, steps"),
        ("order-loops{a=1}", "there are: normalise-tasks, block-loops"),
        ("block-loops{terms=8", "as in block-loops"),
        ("terms=8", "as in block-loops"),
    ],
)
def test_sizes_that_make_no_sense_are_refused_with_the_range(sizes: str, said: str):
    with pytest.raises(ScheduleError) as raised:
        Effort.of("", sizes=sizes)
    assert said in str(raised.value)


def test_a_pass_that_is_left_out_has_no_sizes():
    with pytest.raises(ScheduleError, match="left out, and given sizes"):
        Effort.of("block-loops", sizes="block-loops{terms=8}")


def test_every_size_is_an_option_of_its_pass():
    for name, sizes in SIZES.items():
        text = " ".join(
            f"{key}={'x'.join([str(size.least)] * size.numbers[0])}" for key, size in sizes.items()
        )
        assert [str(made) for made in parse_passes(f"{name}{{{text}}}")] == [f"{name}{{{text}}}"]


@pytest.mark.parametrize(
    "text", ["func.func(canonicalize)", "canonicalize{", "order-loops,,cse", "order-loops cse", ""]
)
def test_what_is_not_written_as_passes_is_refused(text: str):
    with pytest.raises(PassError, match="no list of passes"):
        parse_passes(text)
