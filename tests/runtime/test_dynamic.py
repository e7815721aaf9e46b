"""A function compiled once for arrays of any size and any numbers: what that is, and what not."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import avial_lab
from avial_lab.compiler.options import CompileOptions
from avial_lab.compiler.requests import Build, Built, Scalar, Source
from avial_lab.compiler.worker import build
from avial_lab.core.buffers import bind_arrays
from avial_lab.core.errors import AvialError, BindError, VerifyError
from avial_lab.program.program import Program
from avial_lab.runtime.launch.cluster import Cluster
from kernels import load, names
from kernels.kernel import ELEMENTS

SIZES = (1, 2, 3, 0, 7, 16, 33)

SCALED = """
func.func @scaled(%n: index, %alpha: f32, %k: i32, %A: memref<?x?xf32>, %b: memref<?xf32>) {
  %one = arith.constant 1 : index
  %m = memref.dim %A, %one : memref<?x?xf32>
  %f = arith.sitofp %k : i32 to f32
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %m {
      %x = affine.load %A[%i, %j] : memref<?x?xf32>
      %p = arith.mulf %x, %alpha : f32
      %q = arith.mulf %p, %f : f32
      %y = affine.load %b[%j] : memref<?xf32>
      %z = arith.addf %y, %q : f32
      affine.store %z, %b[%j] : memref<?xf32> } }
  return }
"""


def arrays(n: int, m: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(n)
    return {
        "A": rng.standard_normal((n, m)).astype(np.float32),
        "b": rng.standard_normal(m).astype(np.float32),
    }


def scaled(n: int, m: int, **more: object) -> Program:
    scalars = {"n": n, "alpha": 0.1 * (m + 1), "k": -m}
    options = {"arrays": arrays(n, m), "scalars": scalars, "ranks": 1, "dynamic": True} | more
    return avial_lab.compile(SCALED, **options)  # pyright: ignore[reportArgumentType]


@pytest.mark.quick("2")
@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 2])
def test_one_code_for_all_sizes_and_numbers(cluster: Cluster, ranks: int) -> None:
    objects: set[bytes] = set()
    for n in SIZES:
        program = scaled(n, n + 2, ranks=ranks)
        program.run(cluster, check=True)
        objects.add(program.binary.shared_object)
        numbers = {number.name: number.value for number in program.binary.manifest.numbers}
        assert numbers == program.question.source.scalars
    assert len(objects) == 1


def question(n: int, m: int, scalars: Mapping[str, Scalar]) -> Build:
    return Build(
        Source(SCALED, "c", bind_arrays(arrays(n, m)), scalars),
        options=CompileOptions(dynamic=True),
    )


def test_another_size_is_not_lowered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor in another process: what is kept for all sizes lies on the disk."""
    first: Built = build.build_program(question(3, 4, {"n": 3, "alpha": 0.5, "k": 7}))
    build._cached_tasks.cache_clear()  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(build, "lower_structured", lambda *_: pytest.fail("it was lowered"))
    again: Built = build.build_program(question(40, 5, {"n": 9, "alpha": 1.5, "k": -1}))
    assert again.binary.shared_object == first.binary.shared_object
    assert again.binary.key != first.binary.key
    assert again.binary.manifest.storages[0].shape == (40, 5)


def test_a_size_that_makes_an_access_wrong_is_refused_as_ever() -> None:
    scaled(4, 5)
    with pytest.raises(VerifyError) as fixed:
        scaled(4, 5, scalars={"n": 5, "alpha": 1.0, "k": 1}, dynamic=False)
    with pytest.raises(VerifyError) as generic:
        scaled(4, 5, scalars={"n": 5, "alpha": 1.0, "k": 1})
    assert str(generic.value) == str(fixed.value)
    with pytest.raises(BindError, match="does not fit into i32"):
        scaled(4, 5, scalars={"n": 4, "alpha": 1.0, "k": 2**40})
    with pytest.raises(BindError, match="no value for %k"):
        scaled(4, 5, scalars={"n": 4, "alpha": 1.0})


def test_what_is_told() -> None:
    assert "\nsizes       compiled for arrays of any size, and any numbers" in str(
        scaled(4, 5).explain()
    )
    assert "sizes" not in str(scaled(4, 5, dynamic=False).explain()).split()
    assert "--dynamic" in scaled(4, 5).command


def test_arrays_that_share_memory_have_a_program_of_their_own(cluster: Cluster) -> None:
    both = np.arange(40, dtype=np.float32)
    program = scaled(4, 5, arrays={"A": both[:20].reshape(4, 5), "b": both[18:23]})
    assert "for these sizes and numbers only: its arrays share memory" in str(program.explain())
    program.run(cluster, check=True)


def test_results_of_open_sizes_are_those_of_one_program(cluster: Cluster) -> None:
    text = """
    func.func @twice(%A: memref<?xf64>) -> memref<?xf64> {
      %zero = arith.constant 0 : index
      %n = memref.dim %A, %zero : memref<?xf64>
      %B = memref.alloc(%n) : memref<?xf64>
      affine.for %i = 0 to %n {
        %x = affine.load %A[%i] : memref<?xf64>
        %y = arith.addf %x, %x : f64
        affine.store %y, %B[%i] : memref<?xf64> }
      return %B : memref<?xf64> }"""
    program = avial_lab.compile(text, arrays={"A": np.arange(9.0)}, ranks=1, dynamic=True)
    assert "for these sizes and numbers only: " in program.built.sizes
    program.run(cluster, check=True)
    np.testing.assert_array_equal(program.arrays["result0"], 2 * np.arange(9.0))


def test_tasks_are_those_of_their_arrays() -> None:
    text = """avial.schedule %a {
      %cpu = avial.target {arch = "cpu"}
      %t = avial.task %cpu, %a, %a { affine.for %i = 0 to 8 {
        %x = affine.load %a[%i]
        affine.store %x, %a[%i] } } }"""
    program = avial_lab.compile(text, arrays={"a": np.zeros(8)}, ranks=1, dynamic=True)
    assert not program.built.dynamic
    assert "only plain functions" in program.built.sizes


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("element", ["f64", "f32"])
@pytest.mark.parametrize("name", names())
def test_kernels_for_any_size(cluster: Cluster, name: str, element: str) -> None:
    """Smaller than every tile, between two of them, beside several."""
    kernel = load(name)
    if element not in kernel.elements:
        pytest.skip(f"{name} has no {element} version")
    objects: set[bytes] = set()
    for first in (1, 2, 5, 17, 24, 37):
        sizes = {size: first + k for k, size in enumerate(kernel.size_names)}
        arguments = kernel.inputs(sizes, ELEMENTS[element], np.random.default_rng(first))
        given = {n: value for n, value in arguments.items() if isinstance(value, np.ndarray)}
        scalars = {n: value.item() for n, value in arguments.items() if n not in given}
        program = avial_lab.compile(
            kernel.mlir(element), arrays=given, scalars=scalars, ranks=1, dynamic=True
        )
        program.run(cluster, check=True, threads=2, oversubscribe=True)
        objects.add(program.binary.shared_object)
    assert len(objects) == 1


def test_its_stages_are_looked_at_and_not_edited() -> None:
    program = scaled(4, 5)
    inside = program.inside
    assert [stage.name for stage in inside.stages] == list(program.stages)
    assert "memref<?x?xf32>" in program.stages["mpi"].text
    assert program.nests
    assert "avial.replicate" in program.notation or "avial.task" in program.notation
    with pytest.raises(AvialError, match="compiled for any sizes cannot be edited"):
        program.resume("loops", program.stages["loops"].text)

    both = np.ones(24, np.float32)
    alone = scaled(4, 5, arrays={"A": both[:20].reshape(4, 5), "b": both[18:23]})
    first, stage = next(iter(alone.stages.items()))
    assert not alone.resume(first, stage.text).built.dynamic
