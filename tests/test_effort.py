"""Which optional passes a program is compiled with."""

import pytest

from avial_lab.effort import OPTIONAL, Effort
from avial_lab.errors import ScheduleError


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
