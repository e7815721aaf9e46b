"""Arrays' types and dist operations from a text: read, printed, edited, run on several ranks; and
what sums over rows move.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest

import avial_lab
from avial_lab.compiler.ir.dialects import DIST_FILE, PTENSOR_FILE
from avial_lab.compiler.ir.ptensor_types import full_types
from avial_lab.core.errors import OptionError, VerifyError
from avial_lab.core.toolchain import tool

if TYPE_CHECKING:
    from avial_lab.runtime.launch.cluster import Cluster

TYPE = '!ptensor<1024x6xf64, device="cuda:0", dist>'
TEXT = f"""func.func @f(%A: memref<1024x6xf64>, %S: memref<6xf64>, %B: memref<1024x6xf64>) {{
  %x = "ptensor.load"(%A) : (memref<1024x6xf64>) -> {TYPE}
  %y = "ptensor.binary"(%x, %x) {{op = "multiply"}} : ({TYPE}, {TYPE}) -> {TYPE}
  %s = "ptensor.reduce"(%y) {{op = "sum", axes = array<i64: 0>}}
    : ({TYPE}) -> !ptensor<6xf64, device="cuda:0", dist>
  "ptensor.store"(%s, %S) : (!ptensor<6xf64, device="cuda:0", dist>, memref<6xf64>) -> ()
  "ptensor.store"(%x, %B) : ({TYPE}, memref<1024x6xf64>) -> ()
  return
}}
"""
OPERATIONS = """func.func @f(%A: memref<12x5xf64>, %S: memref<5xf64>, %B: memref<6x5xf64>,
                             %N: memref<3x2xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %a = "dist.register_dtensor"(%A) : (memref<12x5xf64>) -> i64
  %b = "dist.register_dtensor"(%B) : (memref<6x5xf64>) -> i64
  %s = "dist.register_dtensor"(%S) : (memref<5xf64>) -> i64
  %p, %P = "dist.alloc_dtensor"(%c6, %c5) : (index, index) -> (i64, memref<6x5xf64>)
  %v, %V = "dist.create_view"(%a, %c1, %c0, %c6, %c5, %c2, %c1)
    : (i64, index, index, index, index, index, index)
    -> (i64, memref<6x5xf64, strided<[10, 1], offset: 5>>)
  "dist.copy_view"(%v, %p) : (i64, i64) -> ()
  "dist.copy_view"(%p, %b) : (i64, i64) -> ()
  "dist.finalize_reduce"(%p, %s) {op = "sum"} : (i64, i64) -> ()
  affine.for %r = 0 to 3 {
    %rows, %columns = "dist.local_shape"(%p) : (i64) -> (index, index)
    %n = arith.index_cast %rows : index to i64
    %m = arith.index_cast %columns : index to i64
    affine.store %n, %N[%r, 0] : memref<3x2xi64>
    affine.store %m, %N[%r, 1] : memref<3x2xi64>
  } {dist.ranks}
  "dist.dealloc_dtensor"(%p) : (i64) -> ()
  return
}
"""


def given() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((1024, 6)) * 10.0 ** rng.integers(-8, 8, (1024, 1))
    return {"A": rows, "S": np.zeros(6), "B": np.zeros((1024, 6))}


@pytest.mark.parametrize(
    ("file", "text"), [(PTENSOR_FILE, full_types(TEXT)), (DIST_FILE, OPERATIONS)]
)
def test_stock_mlir_reads_the_generic_form(file: object, text: str) -> None:
    done = subprocess.run(
        [str(tool("mlir-opt")), f"--irdl-file={file}", "-"],
        input=text, text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_way_from_a_text_to_loops() -> None:
    """Types are printed as they were written; the device is where it is computed."""
    program = avial_lab.compile(TEXT, arrays=given(), ranks=2)
    stages = program.stages
    assert list(stages)[:3] == ["ptensor", "dist", "source"]
    assert TYPE in stages["ptensor"].text
    assert "!ptensor.ptensor" not in stages["ptensor"].text
    assert "dist.finalize_reduce" in stages["dist"].text
    assert "dist.copy_view" in stages["dist"].text
    assert '"dist.' not in stages["source"].text
    assert "memref.alloc" in stages["source"].text
    assert {d.kind.family for d in program.schedule.topology.devices} == {"cpu", "gpu"}
    inside = program.inside
    steps = {stage.name: [step.name for step in stage.passes] for stage in inside.stages}
    assert steps["dist"] == ["lower-ptensor"]
    assert steps["source"] == ["dist-to-runtime"]


@pytest.mark.slow
def test_a_stage_of_arrays_can_be_edited() -> None:
    program = avial_lab.compile(TEXT, arrays=given(), ranks=2, ignore="device")
    text = program.stages["ptensor"].text.replace('op = "multiply"', 'op = "add"')
    edited = program.resume("ptensor", text)
    assert list(edited.stages)[:3] == ["ptensor", "dist", "source"]
    assert "arith.addf" in edited.stages["source"].text
    text = program.stages["dist"].text.replace("arith.mulf", "arith.subf")
    edited = program.resume("dist", text)
    assert list(edited.stages)[:3] == ["ptensor", "dist", "source"]
    assert "arith.subf" in edited.stages["source"].text


def test_what_is_ignored_is_said_of_the_program() -> None:
    with pytest.raises(OptionError, match="ignore"):
        avial_lab.compile(TEXT, arrays=given(), ignore="shape")
    wrong = TEXT.replace('"cuda:0"', '"tpu:0"')
    with pytest.raises(VerifyError, match="there is no device 'tpu:0'") as caught:
        avial_lab.compile(wrong, arrays=given())
    assert caught.value.span is not None
    assert caught.value.span.line == 2


@pytest.mark.parametrize("ranks", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 7))])
def test_a_sum_over_rows_moves_a_vector_a_rank(ranks: int) -> None:
    """From each to the next: what it has so far."""
    program = avial_lab.compile(TEXT, arrays=given(), ranks=ranks, ignore="device")
    assert program.plan is not None
    moved = sum(move.nbytes for move in program.plan.moves)
    assert moved == (ranks - 1) * 6 * 8


@pytest.mark.mpi
@pytest.mark.slow
def test_sums_have_the_same_bits_on_any_number_of_ranks() -> None:
    """Rows of very different size; and a step of logistic regression moves the model alone."""
    from avial_lab.runtime.launch.cluster import Cluster

    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60001, 7)) * 10.0 ** rng.integers(-8, 8, (60001, 1))
    wanted = (rng.standard_normal(60001) > 0).astype(float)
    found: set[bytes] = set()
    for ranks in (1, 2, 3):
        with Cluster.start(cpu=ranks, gpu=0) as cluster:
            xp = avial_lab.ptensor.on(cluster)
            x, y, w = xp.asarray(rows), xp.asarray(wanted), xp.zeros(7)
            results = [xp.sum(x), x.var(axis=0), x.T @ x]
            xp.sync()
            before = xp.connection.bytes_moved
            w = w - 1e-3 * (x.T @ (1 / (1 + xp.exp(-(x @ w))) - y))
            xp.sync()
            moved = xp.connection.bytes_moved - before
            if ranks == 2:
                # What rank 0 has so far; its rows of the sum; to each the rows of the other of w.
                assert moved == w.nbytes + 3 * 8 + w.nbytes
            found.add(b"".join(np.asarray(each).tobytes() for each in (*results, w)))
    assert len(found) == 1


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_the_six_operations_on_ranks(cluster: Cluster, ranks: int) -> None:
    """The values are NumPy's, the sum in pairs of neighbours."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((12, 5)) * 10.0 ** np.arange(12)[:, None]
    arrays = {"A": a, "S": np.zeros(5), "B": np.zeros((6, 5)), "N": np.zeros((3, 2), "i8")}
    avial_lab.compile(OPERATIONS, arrays=arrays, ranks=ranks).run(cluster)
    odd = a[1::2]
    np.testing.assert_array_equal(arrays["B"], odd)
    pairs = odd[::2] + odd[1::2]
    np.testing.assert_array_equal(arrays["S"], (pairs[0] + pairs[1]) + pairs[2])
    np.testing.assert_array_equal(arrays["N"], [[2, 5]] * 3)
