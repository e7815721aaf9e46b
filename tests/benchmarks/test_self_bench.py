"""The bench of the lab itself, on programs so small that every figure is there in a moment."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import avial_lab
from avial_lab.benchmarks import self_bench
from avial_lab.core.toolchain import find_tool


def test_the_compiler_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_bench, "REPEATS", 1)
    graph, build, again = self_bench._compiler_figures()
    assert [each.unit for each in (graph, build, again)] == ["ms"] * 3
    assert min(each.value for each in (graph, build, again)) > 0
    assert "nothing cached" in build.what


def test_no_two_decks_are_alike() -> None:
    assert self_bench._fresh_deck() != self_bench._fresh_deck()


def test_layers_are_levels_of_neighbours() -> None:
    text = self_bench._layers(12, width=4, slice_size=8)
    arrays = {name: np.zeros(32, np.float32) for name in "xy"}
    graph = avial_lab.analyse(text, arrays=arrays).graph
    assert [len(level) for level in graph.levels] == [4, 4, 4]
    needs = {edge.before for edge in graph.dependencies if edge.after == "t5" and edge.nbytes}
    assert needs == {"t0", "t1", "t2"}
    assert self_bench._placed_s(text) > 0
    assert 0 < self_bench._peak_memory_gib() < 8


@pytest.mark.mpi
def test_a_message_and_the_same_in_c(tmp_path: Path) -> None:
    program = self_bench._ping_pong(4, 6)
    trace = program.run()
    between = [move for move in program.schedule.transfers if move.nbytes == 16]
    assert [move.source for move in between] == [0, 1, 0, 1, 0]
    assert trace.makespan_s > 0
    if find_tool("mpicc") is None:
        pytest.skip("no mpicc: nothing to compare with")
    assert self_bench._peer_s(self_bench._compiled_peer(tmp_path), 16, 4) > 0
