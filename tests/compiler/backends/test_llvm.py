"""From a schedule to machine code: the stages, their commands, and what the shared object does on
its ranks.
"""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mlir import ir

from avial_lab.artifact import binary
from avial_lab.artifact.manifest import KnownMessages
from avial_lab.artifact.stages import Stage
from avial_lab.compiler.backends import llvm
from avial_lab.compiler.backends.llvm import compile_llvm_ir
from avial_lab.compiler.backends.tools import EXPORTED
from avial_lab.compiler.ir.dialects import register
from avial_lab.core.cache import Cache
from avial_lab.core.toolchain import tool
from avial_lab.machine.cpu import instruction_sets_of
from tests.compiler.backends import deck

SUFFIX = {"mlir": "mlir", "llvm": "ll", "asm": "s", "ptx": "ptx"}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))


def test_stages_come_in_reading_order_and_the_module_stays_as_it_was() -> None:
    module = deck.module()
    before = str(module)
    stages, _ = deck.build(module, deck.schedule(gpus=1))
    names = [stage.name for stage in stages]
    assert names == [
        "avial",
        "placed",
        "mpi",
        "gpu",
        "ptx:task3",
        "loops",
        "host",
        "llvm",
        "llvmir",
        "object",
    ]
    assert str(module) == before
    mpi = stages[2].text
    assert "mpi.send(%c" in mpi, "the user's names are kept"
    assert "mpi.barrier" in mpi
    assert '"avial.task"(' not in mpi


def test_ptx_is_for_the_architecture_of_the_target() -> None:
    stages, built = deck.build(deck.module(), deck.schedule(gpus=1))
    assert ".target sm_90" in built.ptx["task3"]
    assert ".visible .entry task3_kernel" in built.ptx["task3"]
    assert next(s for s in stages if s.name == "ptx:task3").text == built.ptx["task3"]


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 3])
def test_every_command_makes_its_stage_from_the_file_before(tmp_path: Path, ranks: int) -> None:
    stages, _ = deck.build(deck.module(), deck.schedule(ranks=ranks, gpus=1))
    folder = tmp_path / "stages"
    folder.mkdir()
    for stage in stages:
        (folder / f"{stage.name}.{SUFFIX[stage.language]}").write_text(stage.text)
    (tmp_path / "bin").mkdir()
    for name in ("mlir-opt", "mlir-translate", "opt", "llc"):
        (tmp_path / "bin" / name).symlink_to(tool(name))
    (tmp_path / "bin" / "python").write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n'
    )
    (tmp_path / "bin" / "python").chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    made = 0
    for stage in stages:
        if not stage.command:
            continue
        done = subprocess.run(
            ["sh", "-c", stage.command],
            cwd=folder,
            env=os.environ | {"PATH": path, "PYTHONPATH": str(Path(llvm.__file__).parents[3])},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{stage.command}\n{done.stderr}"
        again = (folder / f"{stage.name}.{SUFFIX[stage.language]}").read_text()
        assert _normal(stage, again) == _normal(stage, stage.text)
        made += 1
    assert made == 8


def _normal(stage: Stage, text: str) -> str:
    """The text without the names of values, which a file cannot carry."""
    if stage.language != "mlir":
        return text
    context = ir.Context()
    register(context)
    return str(ir.Module.parse(text, context))


def test_only_what_engines_look_up_is_exported(tmp_path: Path) -> None:
    _, built = deck.build(deck.module(), deck.schedule())
    path = tmp_path / "deck.so"
    path.write_bytes(built.shared_object)
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True
    )
    names = {line.split()[-1] for line in listed.stdout.splitlines()}
    of_loops = {"avial_threads", "avial_worth"}  # and these tasks have none to divide
    assert names == set(EXPORTED) - of_loops


def test_vectors_load_neighbours() -> None:
    """In place of putting them together from what the iteration before has loaded."""
    made = llvm.optimised(_NEIGHBOURS)
    assert "fadd <" in made
    assert "shufflevector" not in made


_NEIGHBOURS = f"""
define void @{EXPORTED[0]}(ptr noalias %a, ptr noalias %b) {{
  br label %loop
loop:
  %j = phi i64 [ 1, %0 ], [ %next, %loop ]
  %before = sub i64 %j, 1
  %next = add i64 %j, 1
  %p = getelementptr double, ptr %a, i64 %before
  %q = getelementptr double, ptr %a, i64 %j
  %r = getelementptr double, ptr %a, i64 %next
  %x = load double, ptr %p
  %y = load double, ptr %q
  %z = load double, ptr %r
  %s = fadd double %x, %y
  %t = fadd double %s, %z
  %to = getelementptr double, ptr %b, i64 %j
  store double %t, ptr %to
  %done = icmp eq i64 %next, 1001
  br i1 %done, label %end, label %loop
end:
  ret void
}}
"""


def test_one_rank_calls_no_mpi(tmp_path: Path) -> None:
    _, built = deck.build(deck.module(), deck.schedule(ranks=1))
    assert not built.manifest.uses_mpi
    assert b"MPI_" not in built.shared_object
    path = tmp_path / "deck.so"
    path.write_bytes(built.shared_object)
    rng = np.random.default_rng(1)
    arrays = {name: rng.integers(-100, 100, 20).astype(np.int32) for name in "abcd"}
    a, b = arrays["a"].copy(), arrays["b"].copy()
    steps, times = _call(path, arrays, steps=3)
    np.testing.assert_array_equal(arrays["d"], a + b + a * b)
    assert steps == 2, "the journal holds the last step"
    assert (np.diff(times) >= 0).all(), "the steps are in order"
    assert (times > 0).all()


def _call(path: Path, arrays: dict[str, np.ndarray], *, steps: int) -> tuple[int, np.ndarray]:
    """The journal, and in nanoseconds the steps' starts and the last one's end, after a run."""
    library = ctypes.CDLL(str(path))
    journal = ctypes.c_int64(-1)
    trace = np.zeros((2 * steps + 2, 2), np.int64)
    ctypes.c_void_p.in_dll(library, "avial_journal").value = ctypes.addressof(journal)
    ctypes.c_void_p.in_dll(library, "avial_trace").value = trace.ctypes.data
    descriptors = [
        (ctypes.c_int64 * 5)(array.ctypes.data, array.ctypes.data, 0, array.size, 1)
        for array in arrays.values()
    ]
    entry = library["_mlir_ciface_main"]
    entry.restype = None
    entry(*map(ctypes.byref, descriptors))
    assert not trace[1::2].any(), "no step packs anything"
    return journal.value, trace[0::2, 0] * 1_000_000_000 + trace[0::2, 1]


def test_the_cache_is_used_and_a_damaged_entry_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Cache(tmp_path / "cache")
    text = "define void @_mlir_ciface_main() { ret void }"
    first = compile_llvm_ir(text, store=store)
    (entry,) = store.folder.iterdir()
    data = bytearray(entry.read_bytes())
    data[200] ^= 1
    entry.write_bytes(data)
    assert compile_llvm_ir(text, store=store) == first

    def forbidden(*_: object, **__: object) -> object:
        raise AssertionError("compiled again")

    monkeypatch.setattr(llvm, "_compile", forbidden)
    assert compile_llvm_ir(text, store=store) == first


def test_code_for_other_cpus_has_their_instructions_alone(tmp_path: Path) -> None:
    """A sum of eight is one instruction of 256 bits, or two of 128; each kind has its own."""
    text = """
define void @_mlir_ciface_main(ptr %x, ptr %y) {
  %a = load <8 x float>, ptr %x
  %b = load <8 x float>, ptr %y
  %c = fadd <8 x float> %a, %b
  store <8 x float> %c, ptr %y
  ret void
}"""
    store = Cache(tmp_path / "cache")
    wide, narrow = (compile_llvm_ir(text, store=store, cpu=cpu) for cpu in ("x86-64-v3", "x86-64"))
    assert "ymm" in wide.assembly
    assert "ymm" not in narrow.assembly
    made = llvm.binary_of(wide, KnownMessages.of(deck.schedule(ranks=1)), ptx={})
    assert set(made.manifest.instruction_sets) == instruction_sets_of("x86-64-v3")


def test_another_text_is_another_key() -> None:
    _, one = deck.build(deck.module(), deck.schedule(ranks=1))
    _, three = deck.build(deck.module(), deck.schedule())
    _, again = deck.build(deck.module(), deck.schedule(ranks=1))
    assert one.key == again.key
    assert one.key != three.key


def test_bfloat16_on_a_cpu_without_it(tmp_path: Path) -> None:
    """libgcc knows this rounding since version 13 only; the values are ml_dtypes'."""
    import ml_dtypes

    code = compile_llvm_ir(
        """
define void @_mlir_ciface_main(ptr %x, ptr %single, ptr %double) {
  %v = load double, ptr %x
  %f = fptrunc double %v to float
  %s = fptrunc float %f to bfloat
  %d = fptrunc double %v to bfloat
  store bfloat %s, ptr %single
  store bfloat %d, ptr %double
  ret void
}""",
        store=Cache(tmp_path / "cache"),
        cpu="x86-64",
    )
    path = tmp_path / "bfloat.so"
    path.write_bytes(code.shared_object)
    convert = ctypes.CDLL(str(path))["_mlir_ciface_main"]
    single, double = ctypes.c_uint16(), ctypes.c_uint16()
    rng = np.random.default_rng(2)
    values = [
        0.0,
        -0.0,
        1.0,
        np.inf,
        -np.inf,
        3.4e38,
        -3.4e38,
        1e300,
        1e-40,
        1e-45,
        1e-320,
        1 + 2**-8,
    ]
    # Just beside a tie: rounded to float first, the second would become the tie and go to even.
    values += [1 + 2**-8 + 2**-40, 1 + 2**-8 - 2**-40, 1 + 3 * 2**-8 - 2**-45]
    values += list(rng.normal(size=500) * 10.0 ** rng.integers(-40, 38, 500))
    for value in values:
        convert(ctypes.byref(ctypes.c_double(value)), ctypes.byref(single), ctypes.byref(double))
        with np.errstate(over="ignore"):
            wanted = np.float32(value).astype(ml_dtypes.bfloat16).view(np.uint16)
        assert single.value == wanted, value
        assert double.value == _nearest_bfloat16(value), value
    convert(ctypes.byref(ctypes.c_double(np.nan)), ctypes.byref(single), ctypes.byref(double))
    assert np.isnan(
        np.array([single.value, double.value], np.uint16).view(ml_dtypes.bfloat16)
    ).all()


def _nearest_bfloat16(value: float) -> int:
    """By exact comparison with the two neighbours: ties go to the even one."""
    from fractions import Fraction

    import ml_dtypes

    if np.isinf(value) or value == 0:
        return int(np.array(value, ml_dtypes.bfloat16).view(np.uint16))
    magnitude = Fraction(abs(value))
    low, high = 0, 0x7F80
    while high - low > 1:
        middle = (low + high) // 2
        if _exact(middle) <= magnitude:
            low = middle
        else:
            high = middle
    # Infinity stands for the value that would follow the largest.
    below, above = magnitude - _exact(low), _exact(high) - magnitude
    chosen = low if below < above or (below == above and low % 2 == 0) else high
    return chosen | (0x8000 if value < 0 else 0)


def _exact(bits: int):
    from fractions import Fraction

    import ml_dtypes

    if bits == 0x7F80:
        return Fraction(2) ** 128
    return Fraction(float(np.array(bits, np.uint16).view(ml_dtypes.bfloat16)))


@pytest.mark.mpi
def test_three_ranks_give_what_one_gives(tmp_path: Path) -> None:
    _, built = deck.build(deck.module(), deck.schedule())
    out = _mpirun(tmp_path, built, ranks=3)
    rng = np.random.default_rng(1)
    a, b, *_ = (rng.integers(-100, 100, 20).astype(np.int32) for _ in "abcd")
    np.testing.assert_array_equal(out[0]["c"], a + b)
    np.testing.assert_array_equal(out[2]["d"], a + b + a * b)
    assert [facts["error"] for facts in out] == [0, 0, 0]
    assert [facts["journal"] for facts in out] == [3, 3, 5]


@pytest.mark.mpi
def test_an_mpi_error_is_kept_with_its_step(tmp_path: Path) -> None:
    """MPI_BYTE's handle is not a datatype here: the first message of each rank fails."""
    _, built = deck.build(deck.module(), deck.schedule())
    out = _mpirun(tmp_path, built, ranks=3, byte=0)
    steps = [facts["error"] >> 32 for facts in out]
    assert all(facts["error"] & 0xFFFFFFFF for facts in out)
    assert steps == [1, 1, 0]


def _mpirun(
    folder: Path, built: binary.Binary, *, ranks: int, byte: int | None = None
) -> list[dict]:
    path = folder / "program.so"
    path.write_bytes(built.shared_object)
    driver = Path(__file__).with_name("driver.py")
    done = subprocess.run(
        [tool("mpiexec"), "-n", str(ranks), sys.executable, driver, path, str(byte)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return sorted(lines, key=lambda facts: facts["rank"])
