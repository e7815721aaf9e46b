"""The runtime becomes part of a program that calls it, and of no other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from avial_lab.compiler.backends import c_runtime, llvm, tools
from avial_lab.compiler.backends.llvm import compile_llvm_ir
from avial_lab.core.buffers import Storage
from avial_lab.core.cache import Cache
from avial_lab.core.regions import Box
from avial_lab.planning.schedule import Piece
from avial_lab.runtime.native import sources
from avial_lab.runtime.native.loader import digest, load_program
from avial_lab.runtime.native.ownership import Ownership
from avial_lab.runtime.native.planned_run import plan_run

STRUCTURED = """
@space = private constant [10 x i64] [
  i64 0, i64 6, i64 1, i64 0, i64 6,
  i64 0, i64 1, i64 1, i64 0, i64 0]
declare i64 @avial_begin(i64, i64, ptr, ptr, ptr)
declare void @avial_range(i64, ptr)
declare void @avial_end()
declare void @avial_write(i64, ptr, i64)

define void @touches(ptr %params, ptr %range) {
  call void @avial_write(i64 0, ptr %range, i64 1)
  ret void
}

define void @_mlir_ciface_main(ptr %A) {
  %range = alloca [4 x i64]
  %field = getelementptr ptr, ptr %A, i64 1
  %data = load ptr, ptr %field
  %n = call i64 @avial_begin(i64 0, i64 0, ptr @touches, ptr null, ptr @space)
  %none = icmp eq i64 %n, 0
  br i1 %none, label %end, label %run
run:
  call void @avial_range(i64 0, ptr %range)
  %low = load i64, ptr %range
  %above = getelementptr i64, ptr %range, i64 1
  %high = load i64, ptr %above
  br label %loop
loop:
  %i = phi i64 [ %low, %run ], [ %next, %loop ]
  %at = getelementptr i64, ptr %data, i64 %i
  store i64 %i, ptr %at
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %high
  br i1 %more, label %loop, label %end
end:
  call void @avial_end()
  ret void
}
"""
PLAIN = """
@avial_comm = global i64 0
define void @_mlir_ciface_main(ptr %A) {
  ret void
}
"""
A = Storage("A", (6,), 8, ("A",))


def test_a_structured_program_brings_the_runtime(tmp_path: Path) -> None:
    shared_object = compile_llvm_ir(STRUCTURED, store=Cache(tmp_path)).shared_object
    plan = plan_run(shared_object, (A,), 2)
    assert plan.results == (Piece(0, "A", Box((0,), (3,))), Piece(1, "A", Box((3,), (6,))))
    program = load_program(shared_object, digest(shared_object), entry="main")
    books, memory = Ownership(program, (A,)), np.full(6, -1)
    books.setup(1, 0, [memory.ctypes.data])
    program.call((A,), [memory])
    books.finish()
    assert books.error == 0
    assert books.results() == (Piece(0, "A", Box((0,), (6,))),)
    np.testing.assert_array_equal(memory, np.arange(6))


def test_another_program_does_not(tmp_path: Path) -> None:
    shared_object = compile_llvm_ir(PLAIN, store=Cache(tmp_path)).shared_object
    program = load_program(shared_object, digest(shared_object), entry="main")
    assert not program.exports("avial_setup")


def test_it_is_compiled_once_for_all_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[str] = []
    run = tools.run_tool
    for module in (c_runtime, llvm, tools):
        monkeypatch.setattr(
            module,
            "run_tool",
            lambda command, folder: (commands.append(command[0]), run(command, folder)),
        )
    store = Cache(tmp_path)
    compile_llvm_ir(STRUCTURED, store=store)
    assert commands.count("cc") == 2, "the runtime, and the link"
    compile_llvm_ir(STRUCTURED.replace("i64 6,", "i64 5,"), store=store)
    assert commands.count("cc") == 3


@pytest.mark.quick("ownership/state.h*")
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("ownership/constants.h", "SMALL_REDUCTION = 4096", "SMALL_REDUCTION = 4095"),
        ("ownership/partition.c", "k == n - 1, range)", "k == n, range)"),
        ("ownership/state.h", "MEMO_ENTRIES = 4", "MEMO_ENTRIES = 5"),
    ],
)
def test_a_changed_runtime_changes_the_program(
    name: str, old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Cache(tmp_path)
    before = compile_llvm_ir(STRUCTURED, store=store)
    files = dict(sources.texts("ownership"))
    files[name] = files[name].replace(old, new)
    assert files != sources.texts("ownership")
    monkeypatch.setattr(sources, "texts", lambda part: files)
    assert compile_llvm_ir(STRUCTURED, store=store).shared_object != before.shared_object
    plain = compile_llvm_ir(PLAIN, store=store)
    monkeypatch.undo()
    assert compile_llvm_ir(PLAIN, store=store).shared_object == plain.shared_object
