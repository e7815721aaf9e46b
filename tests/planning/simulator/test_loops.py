"""Programs of loops, simulated turn by turn: by hand; `tests/kernels/test_predicted` has runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from avial_lab.core.buffers import Storage
from avial_lab.core.runtime_constants import MessageFlag, PatternFlag, PhaseKind
from avial_lab.machine.constants import (
    EAGER_BYTES,
    FIRST_TURN_S,
    LAUNCH_STEP_S,
    MESSAGE_STEP_S,
    PHASE_STEP_S,
    THREADS_MEET_S,
)
from avial_lab.machine.cpu import this_cpu
from avial_lab.machine.demand import CoreTime, Demand
from avial_lab.machine.devices import CUDA
from avial_lab.machine.platform import (
    ASSUMED,
    Accelerator,
    Collective,
    CollectiveTime,
    Link,
    Node,
    Platform,
)
from avial_lab.machine.topology import Device, Topology
from avial_lab.planning.costs import CostSource
from avial_lab.planning.phase_costs import PhaseCosts
from avial_lab.planning.simulator.collectives import barrier, broadcast, gather_to_all
from avial_lab.planning.simulator.loops import simulated_turns
from avial_lab.planning.turns import Turns
from avial_lab.trace import EventKind, Trace

BYTES_PER_S, LATENCY_S, FLOPS_PER_S = 1e9, 1e-5, 1e9
BEGIN, FIRST, SEND = PHASE_STEP_S, PHASE_STEP_S + FIRST_TURN_S, MESSAGE_STEP_S
BIG = 10 * EAGER_BYTES

Share = tuple[int, int, int, int, float, int]
"""Place, iterations inside, below, above, work, bytes."""
Message = tuple[int, int, int, int]
"""Source, dest, bytes, flags."""
Copied = tuple[int, int, int, int]
"""Source, dest (places), bytes, whether a message brings it."""


def _cluster(ranks: int, *, memory: float = 1e30) -> Topology:
    """A node of one core for each rank, on one switch; nothing is said of what copies cost."""
    names = [f"n{k}" for k in range(ranks)]
    nodes = tuple(Node(name, 1, 2 * FLOPS_PER_S, memory, memory, 0) for name in names)
    links = tuple(Link(f"l{k}", BYTES_PER_S, LATENCY_S / 2) for k in range(ranks))
    uplinks = {name: (("switch", f"l{k}"),) for k, name in enumerate(names)}
    inside = dict.fromkeys(names, "l0")
    platform = Platform(nodes, links, "a test", ASSUMED, inside, uplinks)
    devices = Topology.local(ranks).devices
    placed = tuple(replace(each, node=n) for each, n in zip(devices, names, strict=True))
    return Topology(ranks, placed, platform)


def _pattern(
    shares: Sequence[Share],
    messages: Sequence[Message] = (),
    flags: int = 0,
    phase: int = 0,
    copies: Sequence[Copied] = (),
) -> list[int]:
    words = [phase, flags, len(shares), len(messages), len(copies)]
    for place, inner, low, high, work, nbytes in shares:
        bits = int(np.array([work]).view(np.int64)[0])
        words += [place, 1, inner, low, high, bits, nbytes, nbytes]
    for source, dest, nbytes, how in messages:
        words += [source, dest, nbytes, how, 0, 1, 0, 1]
    for source, dest, nbytes, late in copies:
        words += [source, dest, nbytes, 0, late]
    return words


def _turns(ranks: int, turns: Sequence[Sequence[int]], *patterns: list[int]) -> Turns:
    phases = tuple(f"S{k}" for k in range(3))
    words = np.array([word for pattern in patterns for word in pattern], np.int64)
    return Turns(ranks, phases, (Storage("A", (8, 8), 8, ("A",)),), np.array(turns), words)


def _seconds(seconds: float, turns: int = 1) -> PhaseCosts:
    """Of all shares of a turn together."""
    return PhaseCosts({"S0": Demand(round(seconds * turns * FLOPS_PER_S), 1)})


def _of(trace: Trace, kind: EventKind, rank: int) -> list[tuple[object, object]]:
    events = (e for e in trace.events if e.kind is kind and e.rank == rank)
    return [(pytest.approx(e.start_s), pytest.approx(e.end_s)) for e in events]


def test_ranks_divide_a_phase_by_its_work() -> None:
    shares = [(0, -1, 3, 0, 3.0, 24), (1, -1, 1, 0, 1.0, 8)]
    trace = simulated_turns(
        _turns(2, [[0, 0, -1, 0]], _pattern(shares)), _seconds(4.0), _cluster(2)
    )
    assert _of(trace, EventKind.TASK, 0) == [(BEGIN, BEGIN + 3)]
    assert _of(trace, EventKind.TASK, 1) == [(BEGIN, BEGIN + 1)]
    assert trace.turns == (("S0", 1),)
    assert trace.simulated


def test_compiled_loops_say_how_long_they_keep_a_core_busy() -> None:
    """Of four million cycles a rank has three quarters; threads that meet take each rank's time."""
    shares = [(0, -1, 3, 0, 3.0, 24), (1, -1, 1, 0, 1.0, 8)]
    turns = _turns(2, [[0, 0, -1, 0]] * 2, _pattern(shares))
    loops = {1: {"S0": CoreTime(4e6, teams=10)}, 2: {"S0": CoreTime(0.0)}}
    costs = PhaseCosts({"S0": Demand(1, 1)}, loops=loops)
    trace = simulated_turns(turns, costs, _cluster(2))
    cycle_s = this_cpu().flops_per_cycle / (2 * FLOPS_PER_S)
    for rank, part in ((0, 3), (1, 1)):
        seconds = sum(e.duration_s for e in trace.events if e.rank == rank)
        assert seconds == pytest.approx(part * 1e6 * cycle_s + 10 * THREADS_MEET_S)


def test_a_run_finds_its_arrays_in_memory() -> None:
    """512 bytes of A at 64 a second: S0 brings 300, S1 the others, no later turn anything."""
    patterns = [_pattern([(0, -1, 1, 0, 1.0, 300)], phase=k) for k in range(3)]
    turns = _turns(1, [[k, k, -1, 0] for k in (0, 1, 2, 0)], *patterns)
    machine = _cluster(1, memory=64.0)
    (node,) = machine.speeds.nodes
    cached = replace(node, caches=((400, 1e30),))
    platform = replace(machine.speeds, nodes=(cached,))
    trace = simulated_turns(turns, PhaseCosts(), replace(machine, platform=platform))
    of_phase = {each.phase: each.seconds for each in trace.totals}
    assert [of_phase[f"S{k}"] for k in range(3)] == pytest.approx([300 / 64, 212 / 64, 0])


def test_turns_shrink_as_what_they_touch() -> None:
    """Two turns, of 300 and of 100 bytes."""
    first, second = ([(0, -1, 1, 0, 1.0, nbytes)] for nbytes in (300, 100))
    turns = _turns(1, [[0, 0, -1, 0], [0, 1, -1, 0]], _pattern(first), _pattern(second))
    trace = simulated_turns(turns, _seconds(4.0), _cluster(1))
    assert [e.duration_s for e in trace.events] == pytest.approx([3, 1])


def test_everybody_does_all_of_what_is_everywhere() -> None:
    shares = [(r, -1, 1, 0, 1.0, 8) for r in range(2)]
    turns = _turns(2, [[0, 0, -1, 0]], _pattern(shares, flags=PhaseKind.EVERYWHERE))
    trace = simulated_turns(turns, _seconds(4.0), _cluster(2))
    assert [e.duration_s for e in trace.events] == pytest.approx([4, 4])


def test_the_inner_part_hides_a_message() -> None:
    """Rank 1 waits for A of rank 0; half of its part does not."""
    shares = [(0, -1, 4, 0, 4.0, 32), (1, 2, 1, 1, 4.0, 32)]
    pattern = _pattern(shares, [(0, 1, 1000, 0)])
    trace = simulated_turns(_turns(2, [[0, 0, -1, 0]], pattern), _seconds(8.0), _cluster(2))
    assert _of(trace, EventKind.SEND, 0) == [(0, FIRST + SEND)]
    inner, low, high = _of(trace, EventKind.TASK, 1)
    assert inner == (FIRST, FIRST + 2)
    (wait,) = _of(trace, EventKind.WAIT, 1)
    assert wait == (FIRST + 2, FIRST + 2)  # it is there long since
    assert (low, high) == ((FIRST + 2, FIRST + 3), (FIRST + 3, FIRST + 4))


def test_a_message_takes_its_latency_and_its_bytes() -> None:
    pattern = _pattern([(1, -1, 1, 0, 1.0, 8)], [(0, 1, 1000, 0)])
    trace = simulated_turns(_turns(2, [[0, 0, -1, 0]], pattern), _seconds(1.0), _cluster(2))
    arrives = FIRST + SEND + LATENCY_S + 1000 / BYTES_PER_S
    assert _of(trace, EventKind.WAIT, 1) == [(FIRST, arrives)]
    assert _of(trace, EventKind.TASK, 1) == [(arrives, arrives + 1)]
    assert trace.bytes_sent == 1000
    assert trace.moves[0].nbytes == 1000


@pytest.mark.parametrize("nbytes", [EAGER_BYTES, BIG])
def test_a_long_message_waits_until_its_receiver_has_begun(nbytes: int) -> None:
    """Rank 1 computes for a second before it comes to the phase that rank 0 sends in."""
    busy = _pattern([(1, -1, 1, 0, 1.0, 8)])
    gets = _pattern([(1, -1, 1, 0, 1.0, 8)], [(0, 1, nbytes, 0)])
    turns = _turns(2, [[0, 0, -1, 0], [0, 1, -1, 0]], busy, gets)
    trace = simulated_turns(turns, _seconds(1.0, 2), _cluster(2))
    (wait,) = _of(trace, EventKind.WAIT, 1)
    first = BEGIN + 1
    way = LATENCY_S + nbytes / BYTES_PER_S
    assert wait[1] == (first + way if nbytes == BIG else first + BEGIN)


def test_two_ranks_on_one_core_take_turns() -> None:
    node = Node("n", 1, 2 * FLOPS_PER_S, 1e30, 1e30, 0)
    link = Link("l", BYTES_PER_S, LATENCY_S)
    platform = Platform((node,), (link,), "a test", ASSUMED, {"n": "l"})
    devices = tuple(replace(each, node="n") for each in Topology.local(2).devices)
    shares = [(r, -1, 1, 0, 1.0, 8) for r in range(2)]
    turns = _turns(2, [[0, 0, -1, 0]], _pattern(shares))
    trace = simulated_turns(turns, _seconds(2.0), Topology(2, devices, platform))
    assert [e.duration_s for e in trace.events] == pytest.approx([2, 2])


def test_partial_results_come_after_the_parts() -> None:
    shares = [(r, -1, 1, 0, 1.0, 8) for r in range(2)]
    partial = _pattern([], [(0, 1, 8, 0), (1, 0, 8, 0)], PatternFlag.PARTIAL)
    trace = simulated_turns(
        _turns(2, [[0, 0, 1, 0]], _pattern(shares), partial), _seconds(2.0), _cluster(2)
    )
    for rank in range(2):
        events = sorted((e for e in trace.events if e.rank == rank), key=lambda e: e.end_s)
        assert [e.kind for e in events] == [EventKind.TASK, EventKind.SEND, EventKind.WAIT]
        assert "partial A" in events[1].name
    assert trace.makespan_s == pytest.approx(1 + SEND + LATENCY_S + 8 / BYTES_PER_S)


def test_a_broadcast_is_one_call_of_all() -> None:
    n, nbytes = 8, 1 << 10
    pattern = _pattern([(3, -1, 1, 0, 1.0, 8)], [(0, -1, nbytes, MessageFlag.COLLECTIVE)])
    turns = _turns(n, [[0, 0, -1, 0]], pattern)
    assert turns.sent == (n - 1, (n - 1) * nbytes)
    trace = simulated_turns(turns, _seconds(1.0), _cluster(n))
    assert trace.bytes_sent == (n - 1) * nbytes
    rounds = broadcast(n, nbytes)
    (wait,) = _of(trace, EventKind.WAIT, 3)
    way = rounds.rounds * LATENCY_S + rounds.nbytes / BYTES_PER_S
    assert wait == (FIRST, FIRST + SEND + way)
    assert len({e.message for e in trace.events if e.message is not None}) == 1


def test_what_all_send_to_all_is_one_gathering() -> None:
    n, nbytes = 4, 1 << 20
    pattern = _pattern(
        [(r, -1, 1, 0, 1.0, 8) for r in range(n)],
        [(r, -1, nbytes, MessageFlag.COLLECTIVE) for r in range(n)],
    )
    trace = simulated_turns(_turns(n, [[0, 0, -1, 0]], pattern), _seconds(0.0), _cluster(n))
    assert gather_to_all(n, n * nbytes).algorithm == "ring"
    # Three rounds, and three messages through each link one after the other.
    way = (n - 1) * (LATENCY_S + nbytes / BYTES_PER_S)
    assert trace.makespan_s == pytest.approx(FIRST + SEND + way, rel=1e-6)
    assert sum(move.nbytes for move in trace.moves) == n * (n - 1) * nbytes == trace.bytes_sent


def test_nobody_leaves_a_barrier_before_the_last_has_come() -> None:
    pattern = _pattern([(1, -1, 1, 0, 1.0, 8)])
    trace = simulated_turns(_turns(4, [[0, 0, -1, 1]], pattern), _seconds(1.0), _cluster(4))
    ends = [e.end_s for e in trace.events if e.kind is EventKind.BARRIER]
    assert ends == pytest.approx([BEGIN + 1 + barrier(4).rounds * LATENCY_S] * 4)


def test_calls_take_what_was_measured_of_so_many_ranks() -> None:
    n, nbytes = 4, 1 << 20
    shares: list[Share] = [(r, -1, 1, 0, 1.0, 8) for r in range(n)]
    gathering = _pattern(shares, [(r, -1, nbytes, MessageFlag.COLLECTIVE) for r in range(n)])
    root = _pattern(shares, [(0, -1, nbytes, MessageFlag.COLLECTIVE)])
    known = (
        CollectiveTime(Collective.ALL_GATHER, n, n, 3e-4, 2e9),
        CollectiveTime(Collective.BROADCAST, n, n, 2e-4, 4e9),
        CollectiveTime(Collective.BARRIER, n, n, 5e-4),
    )
    topology = _cluster(n)
    topology = replace(topology, platform=replace(topology.speeds, collectives=known))
    for pattern, took in ((gathering, 3e-4 + n * nbytes / 2e9), (root, 2e-4 + nbytes / 4e9)):
        trace = simulated_turns(_turns(n, [[0, 0, -1, 1]], pattern), _seconds(0.0), topology)
        last = max(event.end_s for event in trace.events)
        assert last == pytest.approx(FIRST + SEND + took + 5e-4, rel=1e-6)


def test_very_many_messages_are_looked_at_together() -> None:
    """Their bytes, and how long they take through each rank's link, are those of all of them."""
    n, nbytes = 80, 1 << 16
    pairs = [(s, d, nbytes, 0) for d in range(n) for s in range(n) if s != d]
    pattern = _pattern([(r, -1, 1, 0, 1.0, 8) for r in range(n)], pairs)
    turns = _turns(n, [[0, 0, -1, 0]], pattern)
    trace = simulated_turns(turns, _seconds(0.0), _cluster(n))
    assert turns.sent == (n * (n - 1), trace.bytes_sent)
    sending = FIRST + (n - 1) * SEND
    least = sending + LATENCY_S + (n - 1) * nbytes / BYTES_PER_S
    assert trace.makespan_s == pytest.approx(least)


def test_a_trace_keeps_sums_of_what_it_drops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("avial_lab.planning.simulator.loops.MOST_EVENTS", 3)
    turns = _turns(1, [[0, 0, -1, 0]] * 10, _pattern([(0, -1, 1, 0, 1.0, 8)]))
    trace = simulated_turns(turns, _seconds(1.0, 10), _cluster(1))
    assert len(trace.events) == 3
    assert trace.dropped == (7,)
    assert trace.totals[0].events == 10
    assert trace.makespan_s == pytest.approx(10 + 9 * BEGIN)


def test_a_profile_is_divided_as_the_model_has_it() -> None:
    first, second = ([(0, -1, 1, 0, 1.0, nbytes)] for nbytes in (300, 100))
    turns = _turns(1, [[0, 0, -1, 0], [0, 1, -1, 0]], _pattern(first), _pattern(second))
    costs = replace(_seconds(4.0), profile={("S0", "cpu0"): 8.0})
    trace = simulated_turns(turns, costs, _cluster(1))
    assert [e.duration_s for e in trace.events] == pytest.approx([6, 2])
    assert costs.source("S0") is CostSource.PROFILE
    assert _seconds(1.0).source("S0") is CostSource.ROOFLINE
    assert PhaseCosts().source("S0") is CostSource.GUESSED


def test_what_is_unknown_goes_through_memory() -> None:
    turns = _turns(1, [[0, 0, -1, 0]], _pattern([(0, -1, 1, 0, 1.0, 2000)]))
    trace = simulated_turns(turns, PhaseCosts(), _cluster(1, memory=1000.0))
    assert trace.makespan_s == pytest.approx(2)


# With devices -------------------------------------------------------------------------------------

LINK_BYTES_PER_S, LINK_S = 1e9, 1e-4


def _gpus(*drivers: int, ranks: int) -> Topology:
    """`_cluster`, and a GPU for each of those ranks, which computes 10 times as fast as a node."""
    plain = _cluster(ranks)
    gpu = Accelerator("gpu", "sm_90", 20 * FLOPS_PER_S, 1e30, 1 << 40, LINK_BYTES_PER_S, LINK_S)
    nodes = tuple(replace(node, accelerators=(gpu,)) for node in plain.speeds.nodes)
    devices = tuple(
        Device(f"gpu{k}", CUDA, rank, "sm_90", f"n{rank}") for k, rank in enumerate(drivers)
    )
    platform = replace(plain.speeds, nodes=nodes)
    return Topology(ranks, (*plain.devices, *devices), platform)


def _with_devices(turns: Turns, *drivers: int) -> Turns:
    return replace(turns, phases=(*turns.phases, ""), drivers=drivers)


def test_a_part_on_a_gpu_waits_for_its_copy_and_the_results_for_it() -> None:
    """Two places: 0 the rank, 1 its GPU. The rank itself goes on at once."""
    part = _pattern([(1, -1, 4, 0, 4.0, 32)], copies=[(0, 1, 10**6, 0)])
    back = _pattern([], phase=-1, copies=[(1, 0, 2 * 10**6, 0)])
    turns = _with_devices(_turns(1, [[0, 0, -1, 0], [3, 1, -1, 0]], part, back), 0)
    trace = simulated_turns(turns, _seconds(10.0), _gpus(0, ranks=1))
    there, home = (e for e in trace.events if e.kind is EventKind.COPY)
    assert there.duration_s == pytest.approx(BEGIN + SEND + LINK_S + 1e-3)
    (task,) = (e for e in trace.events if e.kind is EventKind.TASK)
    assert (task.device, task.start_s) == ("gpu0", pytest.approx(there.end_s))
    assert task.duration_s == pytest.approx(1.0)
    assert home.start_s == pytest.approx(task.end_s)
    assert trace.makespan_s == pytest.approx(home.end_s)
    assert home.duration_s == pytest.approx(LINK_S + 2e-3)
    assert [(c.phase, c.source, c.dest, c.nbytes) for c in trace.copies] == [
        ("S0", "cpu0", "gpu0", 10**6),
        ("", "gpu0", "cpu0", 2 * 10**6),
    ]
    assert trace.turns == (("S0", 1),)
    assert dict(trace.kinds) == {"cpu0": "cpu", "gpu0": CUDA.name}


def test_a_rank_launches_all_kernels_of_a_phase_while_the_device_runs() -> None:
    turns = _with_devices(_turns(1, [[0, 0, -1, 0]], _pattern([(1, -1, 4, 0, 4.0, 32)])), 0)
    for seconds, lasts in ((10.0, 1.0), (1e-6, 99 * LAUNCH_STEP_S)):
        costs = replace(_seconds(seconds), launches={"S0": 100.0})
        trace = simulated_turns(turns, costs, _gpus(0, ranks=1))
        (task,) = (e for e in trace.events if e.kind is EventKind.TASK)
        assert task.duration_s == pytest.approx(lasts)
        assert task.start_s == pytest.approx(LAUNCH_STEP_S + BEGIN, abs=1.1 * BEGIN)


def test_what_a_gpu_wrote_is_copied_before_it_is_sent_and_goes_on_to_the_other_gpu() -> None:
    part = [(2, -1, 1, 0, 1.0, 8), (3, -1, 1, 0, 1.0, 8)]
    copies = [(2, 0, 1000, 0), (1, 3, 1000, 1)]
    pattern = _pattern(part, [(0, 1, 1000, 0)], copies=copies)
    turns = _with_devices(_turns(2, [[0, 0, -1, 0]], pattern), 0, 1)
    trace = simulated_turns(turns, _seconds(10.0), _gpus(0, 1, ranks=2))
    out, late = sorted(
        (e for e in trace.events if e.kind is EventKind.COPY), key=lambda e: e.start_s
    )
    (sent,) = (e for e in trace.events if e.kind is EventKind.SEND)
    (wait,) = (e for e in trace.events if e.kind is EventKind.WAIT)
    assert out.end_s == pytest.approx(sent.start_s)
    assert (out.device, late.device) == ("gpu0", "gpu1")
    assert wait.end_s < late.end_s
    assert late.start_s < wait.end_s + SEND + LINK_S


def test_from_one_gpu_of_a_rank_to_the_other_both_links_are_used_at_once() -> None:
    copies = [(1, 2, 10**6, 0)]
    pattern = _pattern([(2, -1, 1, 0, 1.0, 8)], copies=copies)
    turns = _with_devices(_turns(1, [[0, 0, -1, 0]], pattern), 0, 0)
    trace = simulated_turns(turns, _seconds(1.0), _gpus(0, 0, ranks=1))
    (copy,) = (e for e in trace.events if e.kind is EventKind.COPY)
    assert copy.end_s == pytest.approx(BEGIN + SEND + LINK_S + 1e-3)
