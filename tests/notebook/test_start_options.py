"""How long a notebook's cluster outlives its kernel."""

from __future__ import annotations

import pytest

from avial_lab.notebook.clusters import KEEP_ELSEWHERE_S, KEEP_S, StartOptions
from avial_lab.runtime.launch.hosts import Hosts, Slurm


def test_a_cluster_elsewhere_is_gone_within_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others wait for those machines; `--keep` says otherwise."""
    monkeypatch.delenv("AVIAL_KEEP_S", raising=False)
    assert KEEP_ELSEWHERE_S < 60 < KEEP_S
    for where in (Hosts(("node1",)), Slurm(2)):
        assert StartOptions(where=where).waits_s == KEEP_ELSEWHERE_S
        assert StartOptions(where=where, keep_s=3600.0).waits_s == 3600.0
    assert StartOptions().waits_s == KEEP_S
