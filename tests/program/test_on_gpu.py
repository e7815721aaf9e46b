"""Loops on GPUs: emulated ones with memory of their own, as late as they may be, or in the order of
a seed. The values are the reference's, and what is copied is what was planned, to the byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ctypes.util import find_library

import numpy as np
import pytest

import avial_lab
import kernels
from avial_lab.core.errors import ScheduleError, VerifyError
from avial_lab.program.inputs import random_arguments
from avial_lab.program.program import Program
from avial_lab.runtime.launch.cluster import Cluster
from avial_lab.runtime.native.loader import digest, load_program
from avial_lab.runtime.native.ownership import Ownership, own_error
from avial_lab.runtime.rank.outcome import describe_step
from avial_lab.trace import Copy, EventKind, Trace
from kernels.kernel import ELEMENTS, Kernel

MACHINES = ((1, 1), (1, 2), (2, 2), (3, 3))
"""Ranks and GPUs."""

QUICK = (("jacobi-2d", 1, 2), ("jacobi-2d", 3, 3), ("gramschmidt", 2, 2), ("trisolv", 2, 2))

STEPS = 50


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    pytest.importorskip("ipyparallel", reason="no ipyparallel: there is no cluster to run on")
    with Cluster.start(cpu=3, gpu=0) as started:
        yield started


def on_gpus(name: str, element: str, sizes: dict[str, int], ranks: int, gpus: int) -> Program:
    kernel = kernels.load(name)
    given = kernel.inputs(sizes, ELEMENTS[element], np.random.default_rng(1))
    return avial_lab.compile(
        kernel.mlir(element, sizes),
        arrays={k: v for k, v in given.items() if isinstance(v, np.ndarray)},
        scalars={k: v for k, v in given.items() if not isinstance(v, np.ndarray)},
        ranks=ranks, gpus=gpus, on="gpu",
    )  # fmt: skip


def by_places(copies: Iterable[Copy]) -> dict[tuple[str, str, str], tuple[int, int]]:
    found: dict[tuple[str, str, str], tuple[int, int]] = {}
    for each in copies:
        key = each.phase, each.source, each.dest
        number, nbytes = found.get(key, (0, 0))
        found[key] = number + each.copies, nbytes + each.nbytes
    return found


def check(program: Program, cluster: Cluster, seed: int) -> Trace:
    trace = program.run(cluster, check=True, device_seed=seed)
    assert program.plan is not None
    predicted = program.simulate()
    assert by_places(predicted.copies) == by_places(program.plan.copies)
    if program.plan.complete:
        assert by_places(trace.copies) == by_places(program.plan.copies)
        assert trace.taken_bytes == program.plan.taken_bytes
        assert predicted.bytes_sent == program.plan.bytes_moved
        moves = sorted(map(repr, program.plan.moves))
        assert sorted(map(repr, trace.moves)) == sorted(map(repr, predicted.moves)) == moves
    return trace


def small(name: str) -> dict[str, int]:
    kernel = kernels.load(name)
    sizes = dict(zip(kernel.size_names, (7, 11, 5, 13, 3), strict=False))
    return {k: min(v, 3) if k == "TSTEPS" else v for k, v in sizes.items()}


@pytest.mark.quick("gramschmidt-2-2", "jacobi-2d-1-2")
@pytest.mark.mpi
@pytest.mark.parametrize(("name", "ranks", "gpus"), QUICK)
def test_some_kernels(name: str, ranks: int, gpus: int, cluster: Cluster) -> None:
    program = on_gpus(name, "f64", small(name), ranks, gpus)
    for seed in (0, 11):
        check(program, cluster, seed)


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("ranks", "gpus"), MACHINES)
@pytest.mark.parametrize("name", kernels.names())
def test_every_kernel(name: str, ranks: int, gpus: int, cluster: Cluster) -> None:
    for element in kernels.load(name).elements:
        program = on_gpus(name, element, small(name), ranks, gpus)
        if not program.of_loops:
            continue  # one task: nothing is divided
        for seed in (0, 11):
            check(program, cluster, seed)


AWKWARD = {
    "0": (0,) * 5, "1": (1,) * 5, "257": (257, 3, 2, 5, 3), "then 257": (3, 257, 2, 5, 3),
    "at last 129": (2, 3, 129, 3, 2),
}  # fmt: skip
"""Nothing, one element, one more than a block has of threads in each of the first dimensions."""

NAMES_AN_ELEMENT = ("correlation", "durbin", "prefix-sum")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("sizes", AWKWARD)
@pytest.mark.parametrize("name", kernels.names())
def test_awkward_sizes(name: str, sizes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On two GPUs of one rank; whose text names an element of nothing is told so at its line."""
    kernel = kernels.load(name)
    element = "f64" if "f64" in kernel.elements else kernel.elements[-1]
    each = dict(zip(kernel.size_names, AWKWARD[sizes], strict=False))
    each = {k: min(v, 3) if k == "TSTEPS" else v for k, v in each.items()}
    if sizes != "0":
        program = on_gpus(name, element, each, 1, 2)
    else:
        monkeypatch.setattr(Kernel, "_check", lambda *_: None)  # which asks for one at least
        text = kernel.mlir(element, each)
        made = random_arguments(text, function=None, seed=0, arrays={}, scalars={}, cell=name)
        given = {"arrays": made.arrays, "scalars": made.scalars}
        if name in NAMES_AN_ELEMENT:
            with pytest.raises(VerifyError, match="which has size 0") as caught:
                avial_lab.compile(text, **given, ranks=1, gpus=2, on="gpu")
            assert caught.value.span is not None
            return
        program = avial_lab.compile(text, **given, ranks=1, gpus=2, on="gpu")
    for seed in (0, 11):
        trace = program.run(check=True, device_seed=seed)
        assert program.plan is not None
        if program.of_loops and program.plan.complete:
            assert by_places(trace.copies) == by_places(program.plan.copies)


@pytest.mark.mpi
def test_arrays_stay_where_they_are(cluster: Cluster) -> None:
    """Each part of an array goes to its GPU once and comes back once, whatever the number of steps;
    a step moves a row each way, from GPU to GPU: the hosts never hold it.
    """
    n, row = 40, 38 * 4
    program = on_gpus("jacobi-2d", "f32", {"TSTEPS": STEPS, "N": n}, 2, 2)
    trace = check(program, cluster, 0)
    copies = by_places(trace.copies)
    for k in (0, 1):
        host, device = f"cpu{k}", f"gpu{k}"
        assert copies["", device, host][1] == (n - 2) * row
        assert not any(phase for phase, source, _ in copies if phase and source == device)
        in_bytes = sum(b for (_, source, _), (_, b) in copies.items() if source == host)
        assert 0 < in_bytes <= n * n * 4  # half of A with its halo, and the edge of B
    sent = [(m.devices, m.messages, m.nbytes) for m in trace.moves]
    for times in (STEPS - 1, STEPS):
        assert sent.count(("gpu0 → gpu1", times, times * row)) == 1
        assert sent.count(("gpu1 → gpu0", times, times * row)) == 1
    assert program.schedule.messages == 2 * (2 * STEPS - 1)
    assert "messages between GPUs go straight from their memory: the self-test of" in trace.note
    said = f"from GPU to GPU of another rank: {2 * (2 * STEPS - 1)} messages, "
    assert said in str(program.explain())
    assert "from GPU to GPU), " in str(program.plan)
    assert "1, gpu1" in str(program.plan)


def test_what_runs_in_order_between_phases_of_a_gpu_runs_there() -> None:
    """The norm of a column: by one thread, so that of the column nothing travels; its sum does,
    which the host reads and sets to zero. What is in order by itself stays.
    """
    m, n = 40, 11
    program = on_gpus("gramschmidt", "f64", {"M": m, "N": n}, 1, 1)
    assert "by one thread of the GPU, where its arrays are in each step" in str(program.explain())
    for seed in (0, 11):
        trace = program.run(check=True, device_seed=seed)
        assert program.plan is not None
        assert by_places(trace.copies) == by_places(program.plan.copies)
    copies = by_places(trace.copies)
    assert copies["load", "gpu0", "cpu0"] == (n, n * 8)
    assert sum(number for number, _ in copies.values()) <= 5 * n
    assert sum(b for (phase, *_), (_, b) in copies.items() if phase) <= (m * n + m + 3 * n) * 8
    alone = on_gpus("durbin", "f64", {"N": 9}, 1, 1)
    why = "its loops run in order: neither i nor a loop in it is free of order (line 13)"
    assert why in str(alone.explain())


@pytest.mark.mpi
def test_what_reads_on_the_host_gets_it(cluster: Cluster) -> None:
    """A scalar that control hangs on, and a sum, which is not on a GPU yet."""
    text = """
    func.func @f(%A: memref<30xf64>, %s: memref<1xf64>, %least: memref<1xf64>) {
      %t = affine.load %least[0] : memref<1xf64>
      scf.while : () -> () {
        %x = memref.load %s[%zero] : memref<1xf64>
        %more = arith.cmpf olt, %x, %t : f64
        scf.condition(%more)
      } do {
        affine.for %i = 0 to 30 {
          %a = affine.load %A[%i] : memref<30xf64>
          %b = arith.addf %a, %a : f64
          affine.store %b, %A[%i] : memref<30xf64>
        }
        affine.for %i = 0 to 30 {
          %a = affine.load %A[%i] : memref<30xf64>
          %y = affine.load %s[0] : memref<1xf64>
          %z = arith.addf %a, %y : f64
          affine.store %z, %s[0] : memref<1xf64>
        }
        scf.yield
      }
      return
    }""".replace("%t = affine", "%zero = arith.constant 0 : index\n      %t = affine")
    arrays = {"A": np.ones(30), "s": np.zeros(1), "least": np.array([1000.0])}
    program = avial_lab.compile(text, arrays=arrays, ranks=3, gpus=2, on="gpu")
    for seed in (0, 5):
        for name, values in (("A", np.ones(30)), ("s", np.zeros(1))):
            np.asarray(program.arrays[name])[...] = values
        check(program, cluster, seed)
        assert np.asarray(program.arrays["s"])[0] == 60 + 120 + 240 + 480 + 960


def test_it_is_called_emulated() -> None:
    program = on_gpus("jacobi-2d", "f32", small("jacobi-2d"), 1, 1)
    trace = program.run()
    assert "GPU emulated" in str(trace)
    assert describe_step(program.binary.manifest, 0, 0) == "in task 'S1' on gpu0 (emulated)"
    ran = {event.device for event in trace.events if event.kind is EventKind.TASK}
    assert ran == {"gpu0"}
    assert "copies to and from devices" in str(trace)
    assert "copies to and from devices" in str(program.plan)
    assert program.plan is not None
    assert program.plan.device_bytes[0] > 0


def test_what_cannot_be_asked_for() -> None:
    for given, said in (
        ({"on": "tpu"}, "cannot run on 'tpu'"),
        ({"on": "gpu", "gpus": 0}, "on a GPU where there are none"),
        ({"gpus": 40, "ranks": 2}, "40 GPUs cannot be driven by 2 ranks"),
    ):
        with pytest.raises(ScheduleError, match=said):
            avial_lab.compile("func.func @f() { return }", **given)  # type: ignore[arg-type]


def test_back_to_the_cpu() -> None:
    """A replicate for a GPU, on the CPU: nothing is copied."""
    text = """avial.schedule %a: memref<20xi32>, %b: memref<20xi32> {
      %gpu = avial.target {arch = "gpu"}
      avial.replicate %gpu, %a, %b {
        affine.for %i = 0 to 20 {
          %x = affine.load %a[%i] : memref<20xi32>
          affine.store %x, %b[%i] : memref<20xi32>
        }
      }
    }"""
    arrays = {"a": np.arange(20, dtype=np.int32), "b": np.zeros(20, np.int32)}
    there = avial_lab.compile(text, arrays=arrays, ranks=1)
    assert there.plan is not None
    assert sum(copy.nbytes for copy in there.plan.copies) == 2 * 80
    here = avial_lab.compile(text, arrays=arrays, ranks=1, on="cpu")
    assert here.plan is not None
    assert not here.plan.copies
    for program in (there, here):
        arrays["b"][:] = 0
        program.run()
        np.testing.assert_array_equal(arrays["b"], arrays["a"])


def test_a_machine_without_a_driver_says_so() -> None:
    """Where NVIDIA's driver is asked for; the run is over then, and its arrays are as they were."""
    if find_library("cuda") is not None:
        pytest.skip("there is a driver here")
    program = on_gpus("jacobi-2d", "f32", small("jacobi-2d"), 1, 1)
    manifest, code = program.binary.manifest, program.binary.shared_object
    loaded = load_program(code, digest(code), entry="main")
    loaded.set_globals({"avial_driver": 2})
    memory = [np.ones(storage.nbytes, np.uint8) for storage in manifest.storages]
    ownership = Ownership(loaded, manifest.storages, drivers=manifest.drivers)
    ownership.setup(1, 0, [data.ctypes.data for data in memory])
    ownership.give(manifest.inputs)
    loaded.call(manifest.storages, memory, manifest.numbers)
    assert own_error(ownership.error) == "a device failed"
    assert ownership.device_error(1)[0].startswith("there is no NVIDIA driver: libcuda.so.1")
    assert all((data == 1).all() for data in memory)


def test_a_run_on_eight_real_gpus_is_predicted() -> None:
    program = on_gpus("jacobi-2d", "f32", {"TSTEPS": 3, "N": 40}, 1, 1)
    trace = program.simulate("preset:8-gpu-node")
    assert {event.device for event in trace.events if event.kind is EventKind.TASK} == {
        f"gpu{k}" for k in range(8)
    }
    assert "emulated" not in trace.label
    scaling = program.scaling([1, 8], topology="preset:8-gpu-node")
    assert "sending and waiting" in scaling.why  # rows of 152 bytes from GPU to GPU
