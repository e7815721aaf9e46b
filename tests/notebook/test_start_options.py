"""How long a notebook's cluster outlives its kernel."""

from __future__ import annotations

import pytest

from avial_lab.notebook.clusters import KEEP_ELSEWHERE_S, KEEP_S, StartOptions
from avial_lab.notebook.magics import _start_options, line_parser
from avial_lab.runtime.launch.hosts import Hosts, Slurm


def test_a_cluster_elsewhere_is_gone_within_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others wait for those machines; `--keep` says otherwise."""
    monkeypatch.delenv("AVIAL_KEEP_S", raising=False)
    assert KEEP_ELSEWHERE_S < 60 < KEEP_S
    for where in (Hosts(("node1",)), Slurm(2)):
        assert StartOptions(where=where).waits_s == KEEP_ELSEWHERE_S
        assert StartOptions(where=where, keep_s=3600.0).waits_s == 3600.0
    assert StartOptions().waits_s == KEEP_S


@pytest.mark.parametrize("line", ["cluster start --cpu 3", "cluster start -n 3"])
def test_ranks_are_asked_for_as_those_of_a_run_are(line: str) -> None:
    """And no GPU with them."""
    assert _start_options(line_parser().parse_args(line.split())) == StartOptions(cpu=3, gpu=0)
