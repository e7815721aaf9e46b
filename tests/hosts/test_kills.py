"""Random kills: as many rounds as `AVIAL_KILLS` says (`python -m tests.hosts.kills` tells each)."""

from __future__ import annotations

import os

from tests.hosts.kills import rounds
from tests.hosts.rig import Rig


def test_what_ends_at_random_moments(rig: Rig) -> None:
    del rig  # where there is none, this is skipped
    count = int(os.environ.get("AVIAL_KILLS", "8"))
    told: list[str] = []
    done, wrong = rounds(count, seed=0, tell=told.append)
    assert (done, wrong) == (count, []), "\n".join(told)
