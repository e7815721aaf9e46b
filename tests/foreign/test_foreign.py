"""Functions as other compilers write them run on any number of ranks as they stand, and compute
what they compute in one process.
"""

from __future__ import annotations

import numpy as np
import pytest

import avial_lab
from avial_lab.program.program import Program
from avial_lab.runtime.launch.cluster import Cluster
from tests.foreign.cases import CASES, FOLDER, Inputs, inputs_of, text_of

RANKS = (1, 2, 3, 5)
EPS = {np.dtype(np.float32): 2.0**-23, np.dtype(np.float64): 2.0**-52}

every_file = pytest.mark.parametrize("name", CASES)


def test_every_file_is_called() -> None:
    assert {path.stem for path in FOLDER.glob("*.mlir")} == set(CASES)


def compiled(name: str, inputs: Inputs, ranks: int) -> tuple[Program, dict[str, np.ndarray]]:
    arrays = inputs.copies()
    program = avial_lab.compile(
        text_of(name), arrays=arrays, scalars=inputs.scalars, ranks=ranks, name=name
    )
    return program, arrays


@pytest.fixture(scope="module")
def truth() -> dict[tuple[str, bool], dict[str, np.ndarray]]:
    """By file and size what it leaves in its arrays when it runs alone."""
    return {}


def reference_of(
    name: str, *, tiny: bool, truth: dict[tuple[str, bool], dict[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    if (name, tiny) not in truth:
        inputs = inputs_of(name, tiny=tiny)
        # For as many ranks as it runs on below: it is compiled once.
        program, arrays = compiled(name, inputs, 3)
        after = program.reference().data
        truth[name, tiny] = {key: after[key].reshape(array.shape) for key, array in arrays.items()}
    return truth[name, tiny]


def differing(got: np.ndarray, want: np.ndarray, terms: int) -> np.ndarray:
    """Where they are further apart than another order of that many terms explains (of none: where
    they are not equal, signs of zeros too); NaN is NaN.
    """
    if got.dtype.kind != "f":
        return np.argwhere(got != want)
    same = (got == want) & (np.signbit(got) == np.signbit(want))
    same |= np.isnan(got) & np.isnan(want)
    if terms:
        scale = max(1.0, float(np.nanmax(np.abs(want), initial=0)))
        same |= np.abs(got - want) <= terms * EPS[got.dtype] * scale
    return np.argwhere(~same)


@every_file
def test_the_reference_takes_it(
    name: str, truth: dict[tuple[str, bool], dict[str, np.ndarray]]
) -> None:
    inputs = inputs_of(name)
    after = reference_of(name, tiny=False, truth=truth)
    changed = any(
        not np.array_equal(after[key], array, equal_nan=True)
        for key, array in inputs.arrays.items()
    )
    assert changed == (name != "writes_nothing")


def check_run(
    name: str,
    ranks: int,
    cluster: Cluster,
    truth: dict[tuple[str, bool], dict[str, np.ndarray]],
    *,
    tiny: bool,
) -> None:
    want = reference_of(name, tiny=tiny, truth=truth)
    program, arrays = compiled(name, inputs_of(name, tiny=tiny), ranks)
    program.run(cluster)
    for key, array in arrays.items():
        terms = program.built.reordered.get(key, 0)
        wrong = differing(array, want[key], terms)
        assert not len(wrong), (
            f"{ranks} ranks: {key}{wrong[0].tolist()} is {array[tuple(wrong[0])]}, "
            f"not {want[key][tuple(wrong[0])]}"
        )


@pytest.mark.mpi
@every_file
def test_it_runs_on_three_ranks(
    name: str, cluster: Cluster, truth: dict[tuple[str, bool], dict[str, np.ndarray]]
) -> None:
    check_run(name, 3, cluster, truth, tiny=False)


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("tiny", [False, True], ids=["usual", "tiny"])
@every_file
def test_it_runs_on_any_number_of_ranks(
    name: str,
    tiny: bool,
    cluster: Cluster,
    truth: dict[tuple[str, bool], dict[str, np.ndarray]],
) -> None:
    for ranks in RANKS:
        check_run(name, ranks, cluster, truth, tiny=tiny)


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 2])
def test_globals_begin_every_run_anew(ranks: int, cluster: Cluster) -> None:
    """An engine loads a program once, however often it runs."""
    program, arrays = compiled("counted_in_a_global", inputs_of("counted_in_a_global"), ranks)
    for _ in range(3):
        program.run(cluster)
        assert arrays["arg0"][0] == 1
        assert arrays["arg1"][63] == 65


RESOURCE = """
memref.global "private" @n.first : memref<2xf64> = dense<7.0>
memref.global "private" @n : memref<2xf64> = dense_resource<start>
func.func @f(%a: memref<2xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %g = memref.get_global @n : memref<2xf64>
  %h = memref.get_global @n.first : memref<2xf64>
  %x = memref.load %g[%c1] : memref<2xf64>
  %y = memref.load %h[%c0] : memref<2xf64>
  %z = arith.addf %x, %y : f64
  memref.store %z, %g[%c1] : memref<2xf64>
  memref.store %z, %h[%c0] : memref<2xf64>
  affine.for %i = 0 to 2 {
    affine.store %z, %a[%i] : memref<2xf64>
  }
  return
}
{-# dialect_resources: { builtin: {
  start: "0x08000000000000000000F03F0000000000000040" } } #-}"""


@pytest.mark.mpi
def test_globals_of_other_kinds_and_names_begin_anew(cluster: Cluster) -> None:
    a = np.zeros(2)
    program = avial_lab.compile(RESOURCE, arrays={"a": a}, ranks=1)
    for _ in range(2):
        program.run(cluster)
        np.testing.assert_array_equal(a, [9, 9])


CHOSEN_SUM = """
func.func @f(%t: memref<1xi64>, %a: memref<f64>, %b: memref<f64>, %x: memref<99xf64>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i64
  %n = memref.load %t[%c0] : memref<1xi64>
  %is = arith.cmpi sgt, %n, %zero : i64
  %m = arith.select %is, %a, %b : memref<f64>
  affine.for %i = 0 to 99 {
    %v = memref.load %m[] : memref<f64>
    %u = affine.load %x[%i] : memref<99xf64>
    %w = arith.addf %v, %u : f64
    memref.store %w, %m[] : memref<f64>
  }
  return
}"""


@pytest.mark.mpi
def test_a_sum_in_an_array_that_is_chosen(
    cluster: Cluster, recwarn: pytest.WarningsRecorder
) -> None:
    arrays = {"t": np.array([1]), "a": np.array(1.0), "b": np.array(2.0), "x": np.ones(99)}
    avial_lab.compile(CHOSEN_SUM, arrays=arrays, ranks=1).run(cluster)
    assert (arrays["a"], arrays["b"]) == (100, 2)
    assert not recwarn.list


ROUND_THE_END = """
func.func @f(%a: memref<200xf64>) {
  %k = arith.constant 100 : i8
  %s = arith.addi %k, %k : i8
  %low = arith.index_cast %s : i8 to index
  %one = arith.constant 1.0 : f64
  affine.for %i = %low to 64 {
    affine.store %one, %a[%i + 56] : memref<200xf64>
  }
  return
}"""

UNTIL_TRUE = """
avial.schedule %a, %done {
  %cpu = avial.target {arch = "cpu"}
  avial.converge until %done ge 1 max 7 {
    avial.task %cpu, %a, %done {
      %c0 = arith.constant 0 : index
      %x = memref.load %a[%c0]
      %one = arith.constant 1.0 : f64
      %y = arith.addf %x, %one : f64
      memref.store %y, %a[%c0]
      %t = arith.constant 3.0 : f64
      %z = arith.cmpf oge, %y, %t : f64
      memref.store %z, %done[]
    }
  }
}"""


@pytest.mark.mpi
def test_narrow_integers_go_round_their_end(cluster: Cluster) -> None:
    """The reference has the same passes before it: it cannot tell."""
    a = np.zeros(200)
    avial_lab.compile(ROUND_THE_END, arrays={"a": a}, ranks=1).run(cluster)
    np.testing.assert_array_equal(a, np.arange(200) < 120)


@pytest.mark.mpi
def test_a_truth_value_ends_a_converge(cluster: Cluster) -> None:
    a, done = np.zeros(1), np.array(False)
    avial_lab.compile(UNTIL_TRUE, arrays={"a": a, "done": done}, ranks=2).run(cluster)
    assert a[0] == 3
    assert done


FROM_MEMORY = {
    "asserted": """
func.func @f(%a: memref<64xf64>, %b: memref<64xf64>, %p: memref<i64>) {
  %z = arith.constant 0 : i64
  %n = memref.load %p[] : memref<i64>
  %t = arith.cmpi sgt, %n, %z : i64
  cf.assert %t, "p has to be positive"
  affine.for %i = 0 to 64 {
    %u = affine.load %a[%i] : memref<64xf64>
    affine.store %u, %b[%i] : memref<64xf64>
  }
  return
}""",
    "divided": """
func.func @f(%a: memref<64xf64>, %b: memref<64xf64>, %p: memref<i64>) {
  %h = arith.constant 64 : i64
  %n = memref.load %p[] : memref<i64>
  %q = arith.divsi %h, %n : i64
  %x = arith.sitofp %q : i64 to f64
  affine.for %i = 0 to 64 {
    %u = affine.load %a[%i] : memref<64xf64>
    %v = arith.addf %u, %x : f64
    affine.store %v, %b[%i] : memref<64xf64>
  }
  return
}""",
    "steps": """
func.func @f(%a: memref<64xf64>, %b: memref<64xf64>, %p: memref<i64>) {
  %c0 = arith.constant 0 : index
  %c63 = arith.constant 63 : index
  %n = memref.load %p[] : memref<i64>
  %m = arith.index_cast %n : i64 to index
  scf.for %i = %c0 to %c63 step %m {
    affine.for %j = 0 to 64 {
      %x = affine.load %a[%j] : memref<64xf64>
      affine.store %x, %b[%j] : memref<64xf64>
    }
    affine.for %j = 0 to 64 {
      %x = affine.load %b[63 - %j] : memref<64xf64>
      affine.store %x, %a[%j] : memref<64xf64>
    }
  }
  return
}""",
}
"""What ends a program, or never does, where the number is the zero that a plan has for it."""


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("what", FROM_MEMORY)
def test_a_plan_does_without_numbers_from_memory(what: str, ranks: int, cluster: Cluster) -> None:
    rng = np.random.default_rng(0)
    arrays = {"a": rng.random(64), "b": rng.random(64), "p": np.array(4)}
    program = avial_lab.compile(FROM_MEMORY[what], arrays=arrays, ranks=ranks)
    want = program.reference().data
    if what == "steps":  # how often there is something to send
        assert program.plan is not None
        assert not program.plan.complete
    program.run(cluster)
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, want[name])
