"""A module in parts is the program that it is in one."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import numpy as np
import pytest

import avial_lab
from avial_lab.benchmarks import kernel_suite
from avial_lab.compiler.backends import llvm, llvm_parts, tools
from avial_lab.compiler.backends.llvm import compile_llvm_ir
from avial_lab.compiler.backends.llvm_parts import joined, parts_of
from avial_lab.compiler.backends.tools import EXPORTED
from avial_lab.core.cache import Cache
from avial_lab.core.errors import InternalError
from avial_lab.runtime.native.loader import digest, load_program
from avial_lab.runtime.native.ownership import Ownership

TWO_PHASES = """
%pair = type { i32, ptr }

@avial_worth = global i64 3
@0 = private unnamed_addr constant [4 x i8] c"a;b\\00", align 1
@1 = private unnamed_addr constant %pair { i32 7, ptr @0 }, align 8

declare i64 @llvm.smax.i64(i64, i64)

define i64 @leaf(i64 %x) #0 {
  %y = call i64 @llvm.smax.i64(i64 %x, i64 5)
  ret i64 %y
}

define internal i64 @"first phase"(ptr %at) {
  %x = load i64, ptr %at
  %y = call i64 @leaf(i64 %x)
  %n = load i32, ptr @1
  %m = sext i32 %n to i64
  %z = mul i64 %y, %m
  ret i64 %z
}

define i64 @second(ptr %at, i64 %by) {
  %more = load i64, ptr @avial_worth
  %x = load i64, ptr %at
  %small = icmp slt i64 %x, 100
  br i1 %small, label %double, label %end
double:
  %y = mul i64 %x, %by
  br label %end
end:
  %z = phi i64 [ %x, %0 ], [ %y, %double ]
  %s = add i64 %z, %more
  ret i64 %s
}

define void @main(ptr %at) {
  %x = call i64 @"first phase"(ptr %at)
  store i64 %x, ptr %at
  %y = call i64 @second(ptr %at, i64 2)
  store i64 %y, ptr %at
  ret void
}

define void @_mlir_ciface_main(ptr %at) {
  call void @main(ptr %at)
  ret void
}

attributes #0 = { noinline }
"""


@pytest.fixture
def _every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm_parts, "LEAST_LINES", 0)


def test_a_small_module_is_one() -> None:
    (part,) = parts_of(TWO_PHASES, EXPORTED)
    assert part.llvm_ir == TWO_PHASES
    assert part.shared == ()


@pytest.mark.usefixtures("_every_size")
def test_phases_part_and_stay_with_what_they_call() -> None:
    parts = parts_of(TWO_PHASES, EXPORTED)
    held = [set(re.findall(r'^define .*?@([\w]+|"[^"]*")\(', p.llvm_ir, re.M)) for p in parts]
    assert len(held) == 2
    assert held[0] | held[1] == {"leaf", '"first phase"', "second", "main", "_mlir_ciface_main"}
    assert not held[0] & held[1]
    one, other = sorted(held, key=lambda names: "leaf" in names)
    assert '"first phase"' in other
    assert "second" in one
    assert {name for part in parts for name in part.shared} == {"second"}


@pytest.mark.usefixtures("_every_size")
def test_a_function_that_is_not_optimised_parts_with_what_it_calls() -> None:
    text = TWO_PHASES.replace('phase"(ptr %at) {', 'phase"(ptr %at) #1 {')
    text += "attributes #1 = { noinline optnone }\n"
    caller, callee = (
        next(
            part
            for part in parts_of(text, EXPORTED)
            if re.search(rf"^define .*@{name}", part.llvm_ir, re.M)
        )
        for name in ('"first phase"', "leaf")
    )
    assert caller is not callee
    assert "declare hidden i64 @leaf(i64 %x)" in caller.llvm_ir


@pytest.mark.usefixtures("_every_size")
@pytest.mark.parametrize("value", [1, 9, 400])
def test_parts_are_the_program(value: int, tmp_path: Path) -> None:
    code = compile_llvm_ir(TWO_PHASES, store=Cache(tmp_path / "cache"))
    assert code.parts == 2
    (tmp_path / "program.so").write_bytes(code.shared_object)
    library = ctypes.CDLL(str(tmp_path / "program.so"))
    ctypes.c_int64.in_dll(library, "avial_worth").value = 10
    at = ctypes.c_int64(value)
    library["_mlir_ciface_main"](ctypes.byref(at))
    first = max(value, 5) * 7
    assert at.value == (first * 2 if first < 100 else first) + 10
    assert not hasattr(library, "second"), "what parts share is seen by nobody else"


@pytest.mark.usefixtures("_every_size")
@pytest.mark.parametrize(
    "line",
    [
        "@c = private constant i64 4",
        "@other = alias i64, ptr @avial_worth",
        'module asm "nop"',
        "$any = comdat any",
        "@table = global [2 x [2 x i64]] zeroinitializer",
    ],
)
def test_what_it_does_not_know_stays_in_one(line: str) -> None:
    assert len(parts_of(TWO_PHASES, EXPORTED)) == 2
    assert len(parts_of(TWO_PHASES.replace("declare", f"{line}\n\ndeclare", 1), EXPORTED)) == 1


@pytest.mark.usefixtures("_every_size")
def test_an_array_is_the_same_in_all_parts(tmp_path: Path) -> None:
    text = TWO_PHASES.replace("@0 =", "@table = global [2 x i64] [i64 4, i64 9]\n@0 =")
    text = text.replace("%s = add i64 %z, %more", "%t = load i64, ptr @table\n%s = add i64 %z, %t")
    assert len(parts_of(text, EXPORTED)) == 2
    (tmp_path / "program.so").write_bytes(
        compile_llvm_ir(text, store=Cache(tmp_path / "cache")).shared_object
    )
    at = ctypes.c_int64(400)
    ctypes.CDLL(str(tmp_path / "program.so"))["_mlir_ciface_main"](ctypes.byref(at))
    assert at.value == 400 * 7 + 4


@pytest.mark.usefixtures("_every_size")
def test_parts_are_as_much_work_not_as_many_lines() -> None:
    """A loop that becomes vectors is more than its lines, and what is not optimised is less."""
    straight, loop = "  %x{0} = add i64 %n, 1\n", "  br label %n{0}, !llvm.loop !1\nn{0}:\n"

    def function(name: str, lines: int, loops: int = 0, attributes: str = "") -> str:
        inside = "".join(map(straight.format, range(lines)))
        inside += "".join(map(loop.format, range(loops)))
        return f"define void @{name}(i64 %n) {attributes}{{\n{inside}  ret void\n}}\n"

    texts = [
        function("a", 400),
        function("b", 400),
        function("loops", 10, loops=600 // llvm_parts.LOOP),
        function("plain", 700, attributes="#0 "),
        "attributes #0 = { noinline optnone }\n",
    ]
    held = [
        re.findall(r"^define .*?@(\w+)", p.llvm_ir, re.M) for p in parts_of("\n".join(texts), ())
    ]
    assert held == [["loops", "plain"], ["a", "b"]]


def test_local_labels_follow_on() -> None:
    one = ".LBB0_1:\n.LBB3_1:\n.Lfunc_end3:\n"
    two = "jmp .LBB0_2\n.LBB0_2:\n.LCPI1_0:\n"
    assert joined([one, two, two]).splitlines() == [
        *one.splitlines(),
        *two.replace("BB0", "BB4").splitlines(),
        *two.replace("BB0", "BB5").replace("CPI1", "CPI3").splitlines(),
    ]


@pytest.mark.quick("ludcmp")
@pytest.mark.parametrize("kernel", ["ludcmp", "deriche"])
def test_a_kernel_in_parts_has_the_same_bits(
    kernel: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = kernel_suite.kernel_program(kernel, size="MINI", element="f64")
    program = avial_lab.compile(given.text, arrays=given.arrays, scalars=given.scalars, ranks=1)
    text, storages = program.stages["llvmir"].text, program.graph.storages
    temporary = frozenset(each.storage for each in program.graph.buffers if each.temporary)
    assert program.plan is not None
    results: list[list[bytes]] = []
    for least in (0, 1 << 30):
        monkeypatch.setattr(llvm_parts, "LEAST_LINES", least)
        code = compile_llvm_ir(text, store=Cache(tmp_path / str(least)))
        assert code.parts == (2 if least == 0 else 1)
        loaded = load_program(code.shared_object, digest(code.shared_object), entry="main")
        rng = np.random.default_rng(1)
        memory = [
            np.frombuffer(bytearray(rng.random(-(-s.nbytes // 8)).tobytes()), np.uint8)
            for s in storages
        ]
        books = Ownership(loaded, storages, temporary)
        books.setup(1, 0, [data.ctypes.data for data in memory])
        books.give(program.plan.inputs)
        loaded.call(storages, memory)
        books.finish()
        assert books.error == 0
        results.append([data.tobytes() for data in memory])
    assert results[0] == results[1]


@pytest.mark.usefixtures("_every_size")
def test_the_command_line_makes_the_same(tmp_path: Path) -> None:
    code = compile_llvm_ir(TWO_PHASES, store=Cache(tmp_path / "cache"))
    source, result = tmp_path / "llvmir.ll", tmp_path / "object.s"
    source.write_text(TWO_PHASES)
    assert llvm.main([str(source), "-o", str(result)]) == 0
    assert result.read_text() == code.assembly


@pytest.mark.parametrize("tool", ["opt", "llc", "llvm-mc"])
def test_which_tool_gave_up_is_told(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = {"opt": "OPT", "llc": "LLC", "llvm-mc": "ASSEMBLE"}[tool]
    *first, last = getattr(tools, called)
    wrong = (*first, "-no-such-option", last)  # of opt's the last one is added to
    for module in (llvm, tools):  # whichever calls it
        monkeypatch.setattr(module, called, wrong, raising=False)
    with pytest.raises(InternalError, match=f"(?s){tool} ended with 1: .*no-such-option"):
        compile_llvm_ir(TWO_PHASES, store=Cache(tmp_path))


def test_a_tool_that_is_killed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed = tmp_path / "opt"  # as when memory runs out: what it had begun to write is there
    killed.write_text('#!/bin/sh\nfor last; do :; done; : >"$last"; kill -9 $$\n')
    killed.chmod(0o700)
    found = tools.tool
    monkeypatch.setattr(tools, "tool", lambda name: killed if name == "opt" else found(name))
    with pytest.raises(InternalError, match="opt ended with 137"):
        compile_llvm_ir(TWO_PHASES, store=Cache(tmp_path / "cache"))
