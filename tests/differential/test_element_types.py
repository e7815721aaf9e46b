"""Every row of the table of element types: read, printed, computed with, sent and combined.

A new row is tried here by itself.
"""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from mlir import ir

import avial_lab
from avial_lab.compiler.frontends.mlir.cells import parse_cell
from avial_lab.core.element_types import (
    COMPANION_CODE,
    ELEMENT_OF_DTYPE,
    ELEMENT_TYPES,
    HANDED,
    REDUCTION_OF,
    ElementKind,
    ElementType,
    combines,
    element_in_untyped,
    element_of_dtype,
    operation_code,
)
from avial_lab.core.runtime_constants import Reduction
from avial_lab.program.inputs import parse_inputs
from avial_lab.runtime.launch.cluster import Cluster
from kernels.kernel import ELEMENTS
from tests.differential.cases import Arrays, Case, try_case

N = 19

ROWS = [pytest.param(row, id=row.name) for row in ELEMENT_TYPES.values()]

ADD = {
    ElementKind.BOOL: "arith.addi",
    ElementKind.INTEGER: "arith.addi",
    ElementKind.INDEX: "arith.addi",
    ElementKind.FLOAT: "arith.addf",
    ElementKind.COMPLEX: "complex.add",
}


def small_values(row: ElementType, rng: np.random.Generator) -> np.ndarray:
    """So small that their sums are exact in every type."""
    most = 2 if row.kind is ElementKind.BOOL else 4
    made = rng.integers(0, most, N)
    if row.kind is ElementKind.COMPLEX:
        return (made + 1j * rng.integers(0, most, N)).astype(row.dtype)
    return made.astype(row.dtype)


def sum_of(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x ^ y if x.dtype == bool else x + y


def combined(row: ElementType, left: str, right: str) -> str:
    """`%z`: the sum, or one of the two where nothing computes with the type."""
    if row.computed:
        return f"%z = {ADD[row.kind]} {left}, {right} : {row.name}"
    return f"%true = arith.constant true  %z = arith.select %true, {left}, {right} : {row.name}"


def loop(row: ElementType, to: str) -> str:
    kind = f"memref<{N}x{row.name}>"
    return f"""affine.for %i = 0 to {N} {{
      %x = affine.load %a[%i] : {kind}
      %y = affine.load %b[%i] : {kind}
      {combined(row, "%x", "%y")}
      affine.store %z, %{to}[%i] : {kind}
    }}"""


def in_tasks(row: ElementType) -> str:
    """c = a + b on one rank, d = c on another."""
    kind = f"memref<{N}x{row.name}>"
    return f"""
avial.schedule %a: {kind}, %b: {kind}, %c: {kind}, %d: {kind} {{
  %cpu = avial.target {{arch = "cpu"}}
  %gpu = avial.target {{arch = "gpu"}}
  %made = avial.task %cpu, %a, %b, %c {{ {loop(row, "c")} }}
  %sent = avial.task %gpu, %c, %d {{ memref.copy %c, %d : {kind} to {kind} }}
}}
"""


def in_a_function(row: ElementType) -> str:
    kind = f"memref<{N}x{row.name}>"
    return f"func.func @f(%a: {kind}, %b: {kind}, %c: {kind}) {{ {loop(row, 'c')} return }}"


def total(row: ElementType) -> str:
    kind = f"memref<{N}x{row.name}>"
    return f"""
func.func @f(%a: {kind}, %s: memref<{row.name}>) {{
  affine.for %i = 0 to {N} {{
    %x = affine.load %a[%i] : {kind}
    %y = affine.load %s[] : memref<{row.name}>
    {combined(row, "%y", "%x")}
    affine.store %z, %s[] : memref<{row.name}>
  }}
  return
}}
"""


def arrays_of(row: ElementType, *names: str):
    def made(rng: np.random.Generator) -> Arrays:
        return {name: small_values(row, rng) for name in names}

    return made


def write_sum(m: Arrays, row: ElementType, to: str) -> None:
    m[to][...] = sum_of(m["a"], m["b"]) if row.computed else m["a"]


@pytest.mark.parametrize("row", ROWS)
def test_it_is_read_and_printed(row: ElementType, context: ir.Context) -> None:
    for text in (in_tasks(row), in_a_function(row), total(row)):
        module = parse_cell(text, cell="In [1]", context=context)
        again = parse_cell(str(module), cell="In [2]", context=context)
        assert row.name in str(module)
        assert str(again) == str(module)


@pytest.mark.quick("i1", "i64", "f32", "bf16", "complex<f32>")
@pytest.mark.mpi
@pytest.mark.parametrize("row", ROWS)
def test_in_tasks_with_a_message(row: ElementType, cluster: Cluster) -> None:
    def meaning(m: Arrays) -> None:
        write_sum(m, row, "c")
        m["d"][...] = m["c"]

    case = Case(in_tasks(row), arrays_of(row, "a", "b", "c", "d"), meaning)
    program = try_case(case, cluster, ranks=2)
    assert [sent.nbytes for sent in program.schedule.transfers] == [N * row.nbytes]


@pytest.mark.quick("i1", "index", "f32", "bf16", "complex<f64>")
@pytest.mark.mpi
@pytest.mark.parametrize("row", ROWS)
def test_in_a_function(row: ElementType, cluster: Cluster) -> None:
    case = Case(in_a_function(row), arrays_of(row, "a", "b", "c"), lambda m: write_sum(m, row, "c"))
    program = try_case(case, cluster, ranks=3)
    assert program.trace is not None
    assert {event.rank for event in program.trace.events} == {0, 1, 2}


@pytest.mark.quick("i1", "i8", "f16", "bf16", "complex<f64>", "i64")
@pytest.mark.mpi
@pytest.mark.parametrize("row", ROWS)
def test_a_sum_over_ranks(row: ElementType, cluster: Cluster) -> None:
    """By several ranks where the runtime combines the type, else by one; right in any case."""

    def meaning(m: Arrays) -> None:
        for x in m["a"]:
            m["s"][...] = sum_of(m["s"], np.asarray(x)) if row.computed else m["s"]

    def arrays(rng: np.random.Generator) -> Arrays:
        return {"a": small_values(row, rng), "s": small_values(row, rng)[:1].reshape(())}

    # A strict program keeps the order of its sums: these are exact in any order.
    program = try_case(Case(total(row), arrays, meaning, rtol=1e-9), cluster, ranks=3)
    assert program.trace is not None
    ran = {event.rank for event in program.trace.events}
    assert ran == ({0, 1, 2} if combines(ADD[row.kind], row.name) else {0})


@pytest.mark.parametrize("row", ROWS)
def test_its_columns_agree(row: ElementType) -> None:
    for name in row.dtypes:
        dtype = row.dtype if name == row.dtypes[0] else np.dtype(name)
        assert dtype.itemsize == row.nbytes
        found = element_of_dtype(dtype)
        assert found is not None
        assert found.name == ("i64" if row.name == "index" else row.name)
    assert not row.combined or row.runtime_code is not None
    assert row.runtime_code is None or 0 <= row.runtime_code < 16
    assert not row.combined or row.computed
    assert (row.ctype is None) == (row.name not in HANDED)
    assert bool(row.c_type) == bool(row.mpi_type)


@pytest.mark.parametrize("row", ROWS)
def test_an_array_of_it_can_be_asked_for(row: ElementType) -> None:
    arrays, _ = parse_inputs([f"a=random:3x{row.name}", f"b=2x{row.name}"])
    assert arrays["a"].dtype == arrays["b"].dtype == row.dtype


def test_an_array_that_numpy_saves_without_its_type_comes_back(tmp_path) -> None:
    saved = [row for row in ELEMENT_TYPES.values() if row.dtype.kind == "V"]
    assert saved
    for row in saved:
        array = small_values(row, np.random.default_rng(3))
        np.save(tmp_path / "a.npy", array)
        arrays, _ = parse_inputs([f"a={tmp_path / 'a.npy'}"])
        assert arrays["a"].dtype == row.dtype
        assert (arrays["a"] == array).all()
    assert element_in_untyped(4) is None


def test_codes_of_the_runtime() -> None:
    """Types whose elements are the same bytes share a number, and no others do."""
    numbered = [row for row in ELEMENT_TYPES.values() if row.runtime_code is not None]
    for one, other in product(numbered, numbered):
        assert (one.runtime_code == other.runtime_code) == (one.dtype == other.dtype)
    assert operation_code("arith.addf", "f64") == 8
    assert operation_code("arith.subi", "i32") == 3
    assert operation_code("arith.maxnumf", "f32") == 10 * 16 + 7
    assert COMPANION_CODE == 240
    assert {*REDUCTION_OF.values()} == {*Reduction} - {Reduction.PAYLOAD}


def test_what_the_runtime_combines() -> None:
    assert combines("arith.mulf", "f32")
    assert combines("avial.argmin", "i8")
    assert not combines("avial.argmin", "i1")
    assert not combines("arith.addf", "bf16")
    assert not combines("arith.mulf", "complex<f32>")
    assert not combines("arith.cmpf", "f32")
    with pytest.raises(KeyError):
        operation_code("arith.addf", "complex<f32>")


def test_integers_of_numpy_come_first_without_a_sign_last() -> None:
    assert [*ELEMENT_OF_DTYPE][:6] == ["bool", "int8", "int16", "int32", "int64", "uint8"]


def test_there_is_no_second_table() -> None:
    package = Path(avial_lab.__file__).parent
    said = re.compile(r"""["'](bf16|float16|complex<f32>)["']""")
    found = [path.name for path in package.rglob("*.py") if said.search(path.read_text())]
    assert found == ["element_types.py"]


def test_the_kernels_mean_the_same_by_their_names() -> None:
    """`kernels/` stands alone; what it calls f32 is what we call f32."""
    assert {name: ELEMENT_TYPES[name].dtype for name in ELEMENTS} == ELEMENTS
