# ruff: noqa: E501  a line of the table holds a whole mistake
"""What a mistake is answered with, from the caller's side: the place, the reason, what to do; the
process lives, and no array has changed.

A culprit stands between ‹ and › in the texts here: there the caret has to stand.
"""

from __future__ import annotations

import pickle
import re
import signal
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from inline_snapshot import snapshot

import avial_lab
from avial_lab.cli.main import main
from avial_lab.core import toolchain
from avial_lab.core.errors import (
    AvialError,
    BindError,
    CheckError,
    ClusterError,
    ParseError,
    RunError,
    ScheduleError,
    VerifyError,
)
from avial_lab.lessons.demo import deck_text
from avial_lab.notebook.display import Note, View, show_note, show_view
from avial_lab.program.compiler_client import shared_compiler
from avial_lab.program.program import Program
from avial_lab.runtime.launch import mpiexec
from avial_lab.runtime.launch.progress import RunState, TaskState
from tests.waiting import assert_gone, with_limits

DECK = deck_text()
COPY = "%x = memref.load %a[%k]\n    memref.store %x, %b[%k]"
FOREVER = """scf.while : () -> () {
      %yes = arith.constant true
      scf.condition(%yes)
    } do {
      %x = memref.load %a[%k]
      memref.store %x, %b[%k]
      scf.yield
    }"""


def small(
    body: str = COPY,
    *,
    head: str = "%a, %b",
    target: str = '%cpu = avial.target {arch = "cpu"}',
    task: str = "%t = avial.task %cpu, %a, %b",
) -> str:
    """A program of one task, as a cell has it: its magic is line 1. The body has the index %k."""
    return (
        f"\navial.schedule {head} {{\n  {target}\n  {task} {{\n"
        f"    %k = arith.constant 3 : index\n    {body}\n  }}\n}}\n"
    )


def numbers(names: str = "ab") -> dict[str, np.ndarray]:
    return {name: np.arange(20, dtype=np.int32) for name in names}


def marked(text: str, culprit: str) -> str:
    """`text` with its first `culprit` between the marks."""
    return text.replace(culprit, f"‹{culprit}›", 1)


def parted(marked: str) -> tuple[str, tuple[int, int] | None]:
    """The text without ‹ and ›, and where the culprit stands."""
    before, mark, _ = marked.partition("‹")
    text = marked.replace("‹", "").replace("›", "")
    if not mark:
        return text, None
    return text, (before.count("\n") + 1, len(before) - before.rfind("\n"))


def told(
    marked: str, kind: type[AvialError], arrays: Mapping[str, Any] | None = None, **options: Any
) -> str:
    """The message and the hint for the program, once everything around them has been held."""
    arrays = numbers() if arrays is None else arrays
    text, place = parted(marked)
    before = {k: v.tobytes() for k, v in arrays.items() if isinstance(v, np.ndarray)}
    with pytest.raises(AvialError) as caught:
        avial_lab.compile(text, arrays=arrays, cell="In [4]", **options)
    error = caught.value
    assert type(error) is kind
    assert {k: v.tobytes() for k, v in arrays.items() if isinstance(v, np.ndarray)} == before
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert "Traceback" not in str(error)
    parts = [error.message]
    if place is not None:
        line, column = place
        shown = text.split("\n")[line - 1]
        indent = re.sub(r"[^\t]", " ", shown[: column - 1])
        parts += [f"In [4]:{line}:{column}", shown, f"{indent}^"]
    assert str(error) == "\n".join(parts + ([f"Hint: {error.hint}"] if error.hint else []))
    return error.message if error.hint is None else f"{error.message} → {error.hint}"


def test_an_error_as_it_is_read() -> None:
    """The whole of it once; below, the place is marked in the program."""
    with pytest.raises(VerifyError) as caught:
        avial_lab.compile(
            DECK.replace("%z, %d[%i]", "%z, %c[%i]"), arrays=numbers("abcd"), cell="deck.avial"
        )
    assert f"{type(caught.value).__name__}: {caught.value}" == snapshot("""\
VerifyError: task 'task2' writes %c, which it does not list
deck.avial:17:24
      memref.store %z, %c[%i]
                       ^
Hint: it lists %d and never touches it; write %d here, or list %c in its place\
""")


MISTAKES = {
    # The notation.
    "misspelt schedule": (small().replace("avial.schedule", "‹avial.shedule›"), ParseError, snapshot("unknown operation 'avial.shedule' → did you mean avial.schedule?")),
    "no comma between buffers": (small(head="%a ‹%b›"), ParseError, snapshot("expected '{' after the buffers → separate buffers by ',': avial.schedule %a, %b { … }")),
    "no percent sign": (small(head="‹a›, b"), ParseError, snapshot("expected a value (%name) or '{' after avial.schedule")),
    "comma at the end": (marked(small(head="%a, %b,"), "{"), ParseError, snapshot("expected a value (%name) after ','")),
    "type without an end": (small(head="%a: memref‹<›20xi32, %b"), ParseError, snapshot("'<' is never closed")),
    "type there is not": (small(head="‹%a›: memref<20xi3z2>, %b"), ParseError, snapshot('memref<20xi3z2> is not a type: i3z2 is not an element type')),
    "type of a tensor": (small(head="‹%a›: tensor<20xi32>, %b"), VerifyError, snapshot('%a is tensor<20xi32>; a buffer is a memref or a number → memref<20xi32>, for example')),
    "target without a name": (small(target='‹avial.target› {arch = "cpu"}'), ParseError, snapshot('avial.target needs a name → %cpu = avial.target {arch = "x86_64"}')),
    "string without an end": (small(target='%cpu = avial.target {arch = ‹"›cpu}'), ParseError, snapshot('the string is never closed → add the \'"\'')),
    "dictionary without an end": (small(target='%cpu = avial.target ‹{›arch = "cpu"'), ParseError, snapshot("'{' is never closed → add the missing '}'")),
    "attribute there is not": (small(target='‹%cpu› = avial.target {archh = "cpu"}'), VerifyError, snapshot("avial.target has no attribute 'archh' → did you mean arch?")),
    "arch of nobody": (small(target='‹%cpu› = avial.target {arch = "sm_99"}'), VerifyError, snapshot('no GPU has the compute capability sm_99 → did you mean sm_90?')),
    "empty arch": (small(target='‹%cpu› = avial.target {arch = ""}'), VerifyError, snapshot('arch of avial.target is empty → for any CPU arch = "cpu", for any GPU arch = "gpu"')),
    "arch that is a number": (small(target="‹%cpu› = avial.target {arch = 90}"), VerifyError, snapshot('arch of avial.target is 90 : i64, not a string → arch = "…"')),
    "text behind a target": (small(target='%cpu = avial.target {arch = "cpu"} ‹foo›'), ParseError, snapshot("unknown operation 'foo'")),
    "misspelt task": (small(task="%t = ‹avial.tusk› %cpu, %a, %b"), ParseError, snapshot("unknown operation 'avial.tusk' → did you mean avial.task?")),
    "no comma after the target": (small(task="%t = avial.task %cpu ‹%a›, %b"), ParseError, snapshot("expected '{' after the head of avial.task → separate buffers by ','")),
    "number in place of a buffer": (small(task="%t = avial.task %cpu, ‹3›, %b"), ParseError, snapshot("expected a value (%name) after ','")),
    "misspelt reads": (small(task="%t = avial.task %cpu ‹reeds›(%a) writes(%b)"), ParseError, snapshot("expected '{' after the head of avial.task → write it as: %task1 = avial.task %cpu, %a, %b { … }")),
    "reads without an end": (small(task="%t = avial.task %cpu reads(%a ‹writes›(%b)"), ParseError, snapshot("expected ')' at the end of reads(…)")),
    "after nothing": (small(task="%t = avial.task %cpu, %a, %b after").replace("after {", "after ‹{›"), ParseError, snapshot("expected a value (%name) after 'after'")),
    "schedule without an end": (marked(small(), "{").rstrip()[:-1], ParseError, snapshot("'{' is never closed → add the missing '}'")),
    "brace too many": (small() + "‹}›\n", ParseError, snapshot("'}' closes nothing → delete it")),
    "text before": ("‹hello› there\n" + small(), ParseError, snapshot("unknown operation 'hello' → a cell takes operations, one a line: %z = arith.addi %x, %y adds two numbers, and func.func @f(%a, %b) { … } holds a program; %avial load lists programs to begin with, %avial load gemm writes one into the next cell")),
    "text behind": (small() + "‹hello› there\n", ParseError, snapshot("unknown operation 'hello'")),
    "text in the schedule": (small(target='%cpu = avial.target {arch = "cpu"}\n  ‹foo›'), ParseError, snapshot("unknown operation 'foo'")),
    # A body.
    "word": (small("‹hello› world"), ParseError, snapshot("unknown operation 'hello'")),
    "operation without its dialect": (small("%x = ‹addi› %k, %k"), ParseError, snapshot("unknown operation 'addi' → did you mean arith.addi?")),
    "no operation": (small("‹=› arith.addi %k, %k"), ParseError, snapshot("'=' is not a statement")),
    "comment of another language": (small("‹#› hello"), ParseError, snapshot("stray '#'")),
    "comment of a third": (small("‹/*› hello */"), ParseError, snapshot("'/*' is not a statement")),
    "statement of another language": (small("‹b›[3] = a[3]"), ParseError, snapshot("unknown operation 'b'")),
    "semicolon": (small("%x = memref.load %a[%k]‹;›"), ParseError, snapshot("';' where memref.load has ended → write it as: %x = memref.load %a[%i]")),
    "bracket without an end": (small("%x = memref.load %a‹[›%k"), ParseError, snapshot("'[' is never closed")),
    "string in a body without an end": (small('vector.print str ‹"›abc'), ParseError, snapshot('the string is never closed → add the \'"\'')),
    "behind letters of several bytes": (small('memref.store %größe, ‹%漢字›[%k]').replace("%k =", "%größe = arith.constant 1 : i32\n    %k ="), VerifyError, snapshot('unknown value %漢字 → the values here are %k, %größe, %cpu, %b, %a')),
    "behind tabs": (small("\t\t%x = ‹memref.laod› %a[%k]"), ParseError, snapshot("unknown operation 'memref.laod' → did you mean memref.load?")),
    "letter that nobody sees": (small("‹\0›"), ParseError, snapshot('a character that cannot be printed (U+0000) → delete it')),
    "loop in words of another language": (small("scf.for %i = 0 ‹until› 20 {\n    }"), ParseError, snapshot("expected 'to' after the lower bound")),
    "bound that is not an integer": (small("scf.for %i = 0 to 2‹.5› {\n    }"), ParseError, snapshot("expected '{' after the loop's bounds")),
    "bound beyond 64 bits": (small(f"scf.for %i = 0 to ‹{10**26}› {{\n    }}"), ParseError, snapshot("'100000000000000000000000000' does not fit into 64 bits")),
    "literal beyond its type": (small(f"%x = arith.constant ‹{10**26}› : i32"), ParseError, snapshot('integer constant out of range for attribute')),
    "operand too few": (small("%x = arith.addi %k‹›"), ParseError, snapshot("expected ',' → write it as: %z = arith.addi %x, %y")),
    "operand too many": (small("%x = arith.addi %k, %k‹,› %k"), ParseError, snapshot("',' where arith.addi has ended → write it as: %z = arith.addi %x, %y")),
    "index too many": (small("%x = memref.load %a[‹%k›, %k]"), VerifyError, snapshot('memref.load has 2 indices for a buffer of 1 dimension (memref<20xi32>)')),
    "type of another": (small("%x = arith.constant 1.0 : f32\n    memref.store ‹%x›, %b[%k]"), VerifyError, snapshot('%x is f32 but %b holds i32 → convert the value before it is stored')),
    # Names.
    "unknown operation": (small("%x = ‹memref.laod› %a[%k]"), ParseError, snapshot("unknown operation 'memref.laod' → did you mean memref.load?")),
    "unknown target": (small(task="%t = avial.task ‹%cpi›, %a, %b"), VerifyError, snapshot('unknown target %cpi → did you mean %cpu?')),
    "unknown buffer": (small(task="%t = avial.task %cpu, %a, ‹%bb›"), VerifyError, snapshot('unknown buffer %bb → did you mean %b?')),
    "unknown value": (small("memref.store ‹%y›, %b[%k]"), VerifyError, snapshot('unknown value %y → the values here are %k, %cpu, %b, %a')),
    # What a task says it does.
    "undeclared write": (small(task="%t = avial.task %cpu, %a").replace("%x, %b", "%x, ‹%b›"), VerifyError, snapshot("task 't' writes %b, which it does not list → add %b to the buffers of 't'")),
    "undeclared write, with roles": (small(task="%t = avial.task %cpu reads(%a)").replace("%x, %b", "%x, ‹%b›"), VerifyError, snapshot("task 't' writes %b, which it does not list → add %b to the buffers of 't'")),
    "write listed as read": (small(task="%t = avial.task %cpu reads(%a, %b)").replace("%x, %b", "%x, ‹%b›"), VerifyError, snapshot("task 't' writes %b, which it lists only as read → add %b to writes(…)")),
    "declared and absent": (small("%x = memref.load %a[%k]", task="%t = avial.task %cpu, %a, ‹%b›"), VerifyError, snapshot("task 't' lists %b, but its body never touches it → take %b out of the list")),
    "declared and absent, with roles": (small("%x = memref.load %a[%k]", task="%t = avial.task %cpu reads(%a) writes(‹%b›)"), VerifyError, snapshot("task 't' lists %b as written, but its body never writes it → take it out of writes(…)")),
    "roles after a list": (small(task="%t = avial.task %cpu, %a ‹writes›(%b)"), ParseError, snapshot('writes(…) after a plain list of buffers → either list them all (avial.task %cpu, %a) or give every one a role')),
    "after itself": (small(task="%t = avial.task %cpu, %a, %b after ‹%t›"), VerifyError, snapshot('task %t waits for itself')),
    "after a buffer": (small(task="%t = avial.task %cpu, %a, %b after ‹%a›"), VerifyError, snapshot('%a is not a task')),
    "after an unknown task": (small(task="%t = avial.task %cpu, %a, %b after ‹%s›"), VerifyError, snapshot('unknown task %s')),
    "no task": ("\n‹avial.schedule› %a, %b {\n}\n", VerifyError, snapshot('the program has no task → add one: avial.schedule %a { %cpu = avial.target {arch = "cpu"} %t = avial.task %cpu, %a { … } }')),
    "no program": ("‹// nothing›\n", VerifyError, snapshot('the program has no task → add one: avial.schedule %a { %cpu = avial.target {arch = "cpu"} %t = avial.task %cpu, %a { … } }')),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_at_its_place(mistake: str) -> None:
    text, kind, expected = MISTAKES[mistake]
    assert told(text, kind) == expected


def test_a_target_without_a_device() -> None:
    """What there is depends on the machine."""
    text = small(
        target='%cpu = avial.target {arch = "cpuu"}', task="‹%t› = avial.task %cpu, %a, %b"
    )
    said = told(text, ScheduleError)
    assert said.startswith("no device satisfies target %cpu (cpuu) of task 't' → the devices are: ")
    assert "cpu1 (" in said
    said = told(marked(DECK, "%task3"), ScheduleError, numbers("abcd"), ranks=3, gpus=0)
    assert said.startswith("no device satisfies target %gpu (sm_90) of task 'task3' → ")
    assert said.endswith("Ask for a GPU device (--gpus 1)")


# What is given besides the text -------------------------------------------------------------------


class Frame:
    """Something that NumPy can make an array of, as a DataFrame."""

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return np.arange(20)


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


A = marked(small(), "%a")
ARRAYS = {
    "list": (A, {"a": [1, 2, 3]}, snapshot("'a' is not a NumPy array, but a list → make one first, a = numpy.array(a); the results come back in it")),
    "none": (A, {"a": None}, snapshot("'a' is not a NumPy array, but None → buffers are NumPy arrays: numpy.zeros(20, 'float32'), for example")),
    "number": (A, {"a": 3}, snapshot("'a' is not a NumPy array, but an int → a number is not a buffer: pass it as scalars={'a': …}, and leave it out of tasks")),
    "number of NumPy's": (A, {"a": np.float32(3)}, snapshot("'a' is not a NumPy array, but a float32 → a number is not a buffer: pass it as scalars={'a': …}, and leave it out of tasks")),
    "frame": (A, {"a": Frame()}, snapshot("'a' is not a NumPy array, but a Frame → make one first, a = numpy.array(a); the results come back in it")),
    "objects": (A, {"a": np.array([None, 1], object)}, snapshot("array 'a' has dtype object, which has no MLIR element type → use one of bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, complex64, complex128")),
    "texts": (A, {"a": np.array(["x"])}, snapshot("array 'a' has dtype <U1, which has no MLIR element type → use one of bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, complex64, complex128")),
    "records": (A, {"a": np.zeros(3, "i4,f4")}, snapshot("array 'a' has dtype [('f0', '<i4'), ('f1', '<f4')], which has no MLIR element type → use one of bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, complex64, complex128")),
    "bytes in another order": (A, {"a": np.zeros(20, np.dtype(np.int32).newbyteorder("S"))}, snapshot("array 'a' has dtype >i4, whose byte order is not this machine's → pass a copy: a.astype(a.dtype.newbyteorder('='))")),
    "mask": (A, {"a": np.ma.masked_array(np.arange(20), np.arange(20) > 3)}, snapshot("array 'a' has a mask, which a program would ignore → pass a.filled(…), or a.data for the values without the mask")),
    "elements that share memory": (A, {"a": np.lib.stride_tricks.as_strided(np.zeros(1), (20,), (0,))}, snapshot("elements of array 'a' overlap in memory → pass a copy: a.copy()")),
    "read-only": (small().replace("%x, %b", "%x, ‹%b›"), {"b": read_only(np.zeros(20, np.int32))}, snapshot("task 't' writes %b, but the array 'b' is read-only → pass a copy: b.copy()")),
    "another shape": (small(head="‹%a›: memref<21xi32>, %b"), {}, snapshot("%a is written memref<21xi32>, but the array 'a' has shape (20,) → write %a: memref<20xi32>, or leave the type out")),
    "another dtype": (small(head="‹%a›: memref<20xf32>, %b"), {}, snapshot("%a is written memref<20xf32>, but the array 'a' holds i32 → write %a: memref<20xi32>, or leave the type out")),
    "another number of dimensions": (small(head="‹%a›: memref<20x?xi32>, %b"), {}, snapshot("%a is written memref<20x?xi32>, but the array 'a' has 1 dimension → write %a: memref<20xi32>, or leave the type out")),
    "one too few": (small(head="%a, %b, ‹%c›"), {}, snapshot("buffer %c has no type and no array of the caller is named 'c' → pass the array c, or write its type: %c: memref<20xf32>")),
    "one too many": (marked(small(), "avial.schedule"), {"bb": np.zeros(3)}, snapshot("array 'bb' is not a buffer of the program → did you mean b?")),
    "name that is no name": (marked(small(), "avial.schedule"), {"<script>": np.zeros(3)}, snapshot("array '<script>' is not a buffer of the program → its buffers: %a, %b")),
}  # fmt: skip


@pytest.mark.parametrize("mistake", ARRAYS)
def test_an_array_that_does_not_fit(mistake: str) -> None:
    text, arrays, expected = ARRAYS[mistake]
    assert told(text, BindError, {**numbers(), **arrays}) == expected


N = small(head="%a, %b, ‹%n›: index")
SCALARS = {
    "missing": (N, {}, snapshot('no value for %n (index) → pass n=…')),
    "no integer": (N, {"n": 2.5}, snapshot('n=2.5 is not an integer, but %n is index → pass int(n)')),
    "NaN": (N, {"n": float("nan")}, snapshot('n=nan is not an integer, but %n is index → pass int(n)')),
    "beyond 64 bits": (N, {"n": 1 << 70}, snapshot('n=1180591620717411303424 does not fit into index')),
    "text": (small(), {"n": "3"}, snapshot("the number 'n' is str, not bool, int or float")),
    "function": (small(), {"n": len}, snapshot("the number 'n' is builtin_function_or_method, not bool, int or float")),
    "array": (small(), {"n": np.zeros(3)}, snapshot("the number 'n' is ndarray, not bool, int or float → an array is passed in arrays={'n': …}")),
    "complex": (small(), {"n": 3j}, snapshot("the number 'n' is complex, not bool, int or float")),
    "nobody asked for": (marked(small(), "avial.schedule"), {"m": 3}, snapshot("number 'm' is not a buffer of the program → its buffers: %a, %b")),
    "an array as well": (small(), {"a": 3}, snapshot("'a' is given as an array and as a number → leave one out")),
}  # fmt: skip


@pytest.mark.parametrize("mistake", SCALARS)
def test_a_number_that_does_not_fit(mistake: str) -> None:
    text, scalars, expected = SCALARS[mistake]
    assert told(text, BindError, scalars=scalars) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"ranks": 0}, snapshot("0 ranks cannot run a program → ask for one rank or more")),
        ({"ranks": -1}, snapshot("-1 ranks cannot run a program → ask for one rank or more")),
        (
            {"ranks": 2, "gpus": 33},
            snapshot("33 GPUs cannot be driven by 2 ranks → each rank drives at most 16"),
        ),
        (
            {"gpus": -1},
            snapshot("-1 GPUs cannot be driven by 2 ranks → each rank drives at most 16"),
        ),
        (
            {"policy": "fastest"},
            snapshot(
                "unknown policy 'fastest' → there are: levels, heft, peft, min-memory, critical-locality, search, exact"
            ),
        ),
        ({"sync": "never"}, snapshot("unknown sync 'never' → there are: edges, levels")),
    ],
)
def test_a_machine_that_cannot_be(options: dict[str, Any], expected: str) -> None:
    assert told(small(), ScheduleError, **options) == expected


def test_more_ranks_than_a_machine_can_start() -> None:
    assert "ranks are more than this machine can start" in told(small(), ScheduleError, ranks=10**5)


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (None, {}, "the program must be a str, not NoneType"),
        (b"", {}, "the program must be a str, not bytes"),
        (small(), {"arrays": [1]}, "arrays must map names to arrays; got list"),
        (small(), {"ranks": 2.5}, "ranks must be a whole number; got 2.5"),
    ],
)
def test_what_is_no_program_at_all(text: Any, options: dict[str, Any], words: str) -> None:
    """A TypeError, as Python has it, and an AvialError."""
    given: dict[str, Any] = {"arrays": numbers(), **options}
    with pytest.raises(TypeError, match=words) as told:
        avial_lab.compile(text, **given)
    assert isinstance(told.value, AvialError)


def test_a_number_of_ones_own_wins_over_a_variable() -> None:
    names = avial_lab.Namespace({**numbers(), "n": 3, "unused": object()})
    body = "%x = memref.load %a[%n]\n    memref.store %x, %b[%n]"
    text = small(body, head="%a, %b, %n: index")
    program = avial_lab.compile(text, arrays=names, scalars={"n": 5})
    assert dict(program.question.source.scalars) == {"n": 5}


def test_variables_whose_names_are_not_english() -> None:
    arrays = {"größe": numbers("a")["a"], "b": numbers("b")["b"]}
    text = small().replace("%a", "%größe")
    program = avial_lab.compile(text, arrays=avial_lab.Namespace(arrays))
    assert program.arrays["größe"] is arrays["größe"]


# What is legal ------------------------------------------------------------------------------------

ROUND = "memref.copy %a, %b"
LEGAL = {
    "NaN": lambda: (np.array([np.nan, -0.0, np.inf]), np.zeros(3)),
    "empty": lambda: (np.zeros(0), np.zeros(0)),
    "empty in one dimension": lambda: (np.zeros((3, 0, 2)), np.zeros((3, 0, 2))),
    "0-d": lambda: (np.array(3.5), np.array(0.0)),
    "rank 8": lambda: (np.arange(256.0).reshape((2,) * 8), np.zeros((2,) * 8)[::-1]),
    "Fortran order": lambda: (np.arange(6.0).reshape(2, 3), np.zeros((3, 2)).T),
    "not contiguous": lambda: (np.arange(9.0)[::2], np.zeros(15)[::3]),
    "source read-only": lambda: (read_only(np.arange(3.0)), np.zeros(3)),
}  # fmt: skip


@pytest.mark.quick("rank 8", "NaN", "empty")
@pytest.mark.mpi
@pytest.mark.parametrize("kind", LEGAL)
def test_legal_arrays_run(kind: str) -> None:
    a, b = LEGAL[kind]()
    before = a.tobytes()
    program = avial_lab.compile(small(ROUND), arrays={"a": a, "b": b}, ranks=1)
    program.run(check=True)
    assert b.tobytes() == a.tobytes() == before


@pytest.mark.mpi
@pytest.mark.parametrize("name", ["größe", "for", "a-b", "a.b"])
def test_odd_names_run(name: str) -> None:
    arrays = {name: np.arange(20, dtype=np.int32), "b": np.zeros(20, np.int32)}
    program = avial_lab.compile(small().replace("%a", f"%{name}"), arrays=arrays, ranks=1)
    program.run(check=True)
    assert arrays["b"][3] == 3


@pytest.mark.quick("MPI_Isend", "-", "gr*")
@pytest.mark.mpi
@pytest.mark.parametrize("task", ["main", "MPI_Isend", "malloc", "3", "größe", "-", ".x", "$x"])
def test_odd_names_of_tasks_run(task: str) -> None:
    """None of them meets a symbol of the C library, of MPI or of ours, or stops the assembler."""
    arrays = numbers()
    text = small(task=f"%{task} = avial.task %cpu, %a, %b")
    avial_lab.compile(text, arrays=arrays, ranks=1).run(check=True)


@pytest.mark.mpi
def test_fewer_ranks_than_targets() -> None:
    arrays = numbers("abcd")
    avial_lab.compile(DECK, arrays=arrays, ranks=1).run(check=True)
    assert arrays["d"].tolist() == [2 * k + k * k for k in range(20)]


# What goes wrong while it runs --------------------------------------------------------------------


def ended(program: Program, kind: type[AvialError] | None, **options: Any) -> AvialError:
    """The error of the run, once it has been held that no array has changed."""
    before = {name: array.tobytes() for name, array in program.arrays.items()}
    with pytest.raises(AvialError) as caught:
        program.run(**options)
    assert kind is None or type(caught.value) is kind
    assert {name: array.tobytes() for name, array in program.arrays.items()} == before
    return caught.value


def compiled(body: str, **options: Any) -> Program:
    return avial_lab.compile(small(body), arrays=numbers(), cell="In [4]", ranks=2, **options)


LOOP = """scf.for %i = 0 to {n} {{
      %x = memref.load %a[%i]
      memref.store %x, %b[%i]
    }}"""
AT_RUN_TIME = """%first = arith.constant 0 : index
    %zero = memref.load %a[%first]
    %from = arith.index_cast %zero : i32 to index
    %by = arith.constant {by} : index
    %n = arith.addi %from, %by
    """
"""%n, which is {by}: what only the run knows."""
DIVIDE = """%first = arith.constant 0 : index
    %zero = memref.load %a[%first]
    %x = memref.load %a[%k]
    %y = arith.divsi %x, %zero
    memref.store %y, %b[%k]"""
FAR = AT_RUN_TIME.format(by=1 << 40) + COPY.replace("[%k]", "[%n]")


def test_an_index_that_is_out_of_bounds_is_refused() -> None:
    with pytest.raises(VerifyError) as caught:
        compiled(LOOP.format(n=25))
    assert str(caught.value) == snapshot("""\
a[i] reaches index 24 of dimension 0, which has size 20
In [4]:7:7
      %x = memref.load %a[%i]
      ^
Hint: make the array longer, or the loop shorter\
""")


def test_check_finds_an_index_out_of_bounds() -> None:
    program = compiled(AT_RUN_TIME.format(by=25) + LOOP.format(n="%n"))
    assert str(ended(program, CheckError, check=True)) == snapshot("""\
memref.load %a[%i]: index 20 is out of bounds for dimension 0 of size 20
In [4]:12:7
      %x = memref.load %a[%i]
      ^
Hint: found by the sequential reference run\
""")


def test_check_finds_a_negative_index() -> None:
    program = compiled(AT_RUN_TIME.format(by=-1) + COPY.replace("[%k]", "[%n]"))
    assert str(ended(program, CheckError, check=True)) == snapshot("""\
memref.load %a[%n]: index -1 is out of bounds for dimension 0 of size 20
In [4]:11:5
    %x = memref.load %a[%n]
    ^
Hint: found by the sequential reference run\
""")


def test_a_task_that_ends_the_check() -> None:
    """The reference runs in a process of its own: the compiler's outlives it."""
    program = compiled(DIVIDE)
    process = shared_compiler().pid
    error = ended(program, RunError, check=True)
    assert error.message == snapshot(
        "the sequential reference run ended in task 't': killed by SIGFPE"
    )
    assert str(error.span) == "In [4]:4:3"
    assert error.hint == "usually an integer division by zero"
    assert shared_compiler().pid == process


def test_a_check_that_never_ends() -> None:
    program = compiled(FOREVER)
    error = with_limits(
        lambda limit_s: ended(program, None, check=True, timeout=limit_s),
        lambda error: "in task 't'" in error.message,
    )
    assert type(error) is RunError
    assert re.sub(r"[\d.]+ s", "LIMIT", error.message) == snapshot(
        "the sequential reference run ended in task 't': the compiler took longer than LIMIT and was stopped"
    )
    assert str(error.span) == "In [4]:4:3"


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("body", "deaths"),
    [(FAR, ("SIGSEGV", "SIGBUS")), (DIVIDE, ("SIGFPE",))],
    ids=["index", "division"],
)
def test_a_crash_is_told_as_task_rank_and_signal(body: str, deaths: tuple[str, ...]) -> None:
    error = ended(compiled(body), RunError)
    assert error.message in [f"rank 0 of 2 died of {death} in task 't' on cpu0" for death in deaths]
    assert str(error.span) == "In [4]:4:3"
    assert error.hint


@pytest.mark.mpi
def test_a_rank_that_was_gone_before_anybody_looked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its journal is there, its process is not: it did start."""
    monkeypatch.setattr(mpiexec._Ranks, "find", lambda _: None)
    error = ended(compiled(DIVIDE), RunError)
    assert error.message == "rank 0 of 2 died of SIGFPE in task 't' on cpu0"


@pytest.mark.mpi
@pytest.mark.parametrize(("arch", "device"), [("cpu", "cpu0"), ("sm_80", "gpu0 (emulated)")])
def test_a_run_that_never_ends(arch: str, device: str) -> None:
    """A kernel has come to nothing but its queue when its rank waits for it: it is named, too."""
    text = small(FOREVER, target=f'%cpu = avial.target {{arch = "{arch}"}}')
    arrays = {"a": np.arange(20), "b": np.zeros(20, np.int64)}
    program = avial_lab.compile(text, arrays=arrays, ranks=1, gpus=1, cell="In [4]")
    error = with_limits(
        lambda limit_s: ended(program, RunError, timeout=limit_s),
        lambda error: "in task 't'" in error.message,
    )
    assert re.sub(r"[\d.]+ s", "LIMIT", error.message) == (
        f"the run did not finish within LIMIT\n  rank 0 is in task 't' on {device}"
    )
    assert str(error.span) == "In [4]:4:3"


@pytest.mark.mpi
def test_ctrl_c_during_a_run() -> None:
    program = compiled(FOREVER)
    before = program.arrays["b"].copy()
    children = set(psutil.Process().children(recursive=True))
    main_thread = threading.main_thread().ident
    assert main_thread is not None

    def press(now: RunState) -> None:
        """Once the task runs, from another thread; and again if the run goes on, as people do:
        Python drops one that falls into a finalizer.
        """
        if not now.ended and now.count(TaskState.RUNNING):
            threading.Thread(target=signal.pthread_kill, args=(main_thread, signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        program.run(progress=press)
    assert (program.arrays["b"] == before).all()
    # The compiler's process may still be making the runtime in C, which ends by itself.
    assert_gone(list(set(psutil.Process().children(recursive=True)) - children))
    avial_lab.compile(small(), arrays=program.arrays, ranks=1).run()


@pytest.mark.mpi
def test_a_second_run_while_one_runs() -> None:
    """Both are right: a run works on its own files and its own ranks."""
    results = [numbers("abcd") for _ in range(2)]
    programs = [avial_lab.compile(DECK, arrays=arrays, ranks=2) for arrays in results]
    threads = [threading.Thread(target=program.run) for program in programs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for arrays in results:
        assert arrays["d"].tolist() == [2 * k + k * k for k in range(20)]


# What the machine lacks ---------------------------------------------------------------------------


@pytest.mark.mpi
def test_a_cache_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    arrays = numbers()
    avial_lab.compile(small(), arrays=arrays, ranks=1).run()
    assert arrays["b"][3] == 3
    assert "the build cache could not be written" in caplog.text


def test_a_damaged_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    avial_lab.compile(small(), arrays=numbers(), ranks=1)
    (entry,) = (tmp_path / "avial_lab" / "programs").iterdir()
    whole = entry.read_bytes()
    for damaged in (b"", whole[:100], whole[:-1], whole.replace(b"avial", b"aviol")):
        entry.write_bytes(damaged)
        assert avial_lab.compile(small(), arrays=numbers(), ranks=1).stages["mpi"].text
        assert entry.read_bytes() == whole or len(entry.read_bytes()) > 100


@pytest.mark.mpi
def test_nowhere_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    program = compiled(COPY)
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    assert str(ended(program, ClusterError)) == snapshot("""\
the files of the run cannot be written to /nowhere: No such file or directory
Hint: free some space there, or set TMPDIR to another folder\
""")


def test_no_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    program = compiled(COPY)
    find = toolchain.find_tool
    monkeypatch.setattr(
        toolchain, "find_tool", lambda name: None if name == "mpiexec" else find(name)
    )
    mpiexec.mpiexec_options.cache_clear()
    error = ended(program, toolchain.ToolError)
    assert "the program 'mpiexec' was not found" in str(error)
    assert "pip install" in (error.hint or "")


# The page -----------------------------------------------------------------------------------------

EVIL = "<script>alert('x')</script>"


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    text = f"// {EVIL}\n" + small(
        '%e = arith.constant {evil = "EVIL"} 1 : i32\n    '.replace("EVIL", EVIL) + COPY
    )
    program = avial_lab.compile(text, arrays=numbers(), name=EVIL, cell=EVIL)
    page = program.report(tmp_path / "report.html").read_text()
    assert "alert(" in page, "the name is shown"
    assert "<script>alert" not in page
    shown = "".join(
        bundle["text/html"] for bundle in (show_view(View(program)), show_note(Note(EVIL, EVIL)))
    )
    assert "alert(" in shown
    assert "<script>alert" not in shown


# The command line ---------------------------------------------------------------------------------

FOUR = ["--in", "a=20xi32", "--in", "b=20xi32", "--in", "c=20xi32", "--in", "d=20xi32"]
COMMANDS = {
    "no file": (["run", "nowhere.avial"], 1, snapshot(['BindError: cannot read nowhere.avial: No such file or directory'])),
    "folder": (["run", "."], 1, snapshot(['BindError: cannot read .: Is a directory'])),
    "binary": (["graph", "binary.avial"], 1, snapshot(['BindError: binary.avial is not a text file'])),
    "empty": (["graph", "empty.avial"], 1, snapshot(['VerifyError: the program has no task', 'empty.avial:1:1', 'Hint: add one: avial.schedule %a { %cpu = avial.target {arch = "cpu"} %t = avial.task %cpu, %a { … } }'])),
    "mistake": (["lower", "bad.avial", *FOUR], 1, snapshot(["ParseError: unknown operation 'arith.adi'", 'bad.avial:8:12', '      %z = arith.adi %x, %y', '           ^', 'Hint: did you mean arith.addi?'])),
    "no ranks": (["run", "deck.avial", *FOUR, "-n", "0"], 1, snapshot(['ScheduleError: 0 ranks cannot run a program', 'Hint: ask for one rank or more'])),
    "GPUs": (["run", "deck.avial", *FOUR, "-n", "2", "--gpus", "90"], 1, snapshot(['ScheduleError: 90 GPUs cannot be driven by 2 ranks', 'Hint: each rank drives at most 16'])),
    "no value": (["run", "deck.avial", "--in", "a"], 1, snapshot(["BindError: 'a' is not NAME=VALUE", 'Hint: for example --in a=a.npy'])),
    "no such file": (["run", "deck.avial", "--in", "a=a.npy"], 1, snapshot(['BindError: --in a: there is no file a.npy', 'Hint: for zeros --in a=20x30xf32, for random values --in a=random:20x30xf32'])),
    "empty file": (["run", "deck.avial", "--in", "a=empty.npy"], 1, snapshot(['BindError: --in a: empty.npy is empty'])),
    "not an array": (["run", "deck.avial", "--in", "a=deck.avial"], 1, snapshot(['BindError: --in a: deck.avial is not a .npy file of numbers'])),
    "twice": (["run", "deck.avial", "--in", "a=20xi32", "--in", "a=20xi32"], 1, snapshot(['BindError: --in a is given twice'])),
    "too large": (["graph", "deck.avial", "--in", f"a={10**15}x{10**6}xi32"], 1, snapshot(['BindError: --in a=1000000000000000x1000000xi32 does not fit into memory'])),
    "no array for a buffer": (["graph", "deck.avial"], 1, snapshot(["BindError: buffer %a has no type and no array of the caller is named 'a'", 'deck.avial:1:16', 'avial.schedule %a, %b, %c, %d {', '               ^', 'Hint: pass the array a, or write its type: %a: memref<20xf32>'])),
    "buffer too many": (["graph", "deck.avial", *FOUR, "--in", "e=3xi32"], 1, snapshot(["BindError: array 'e' is not a buffer of the program", 'deck.avial:1:1', 'avial.schedule %a, %b, %c, %d {', '^', 'Hint: its buffers: %a, %b, %c, %d'])),
    "no buffer for an output": (["run", "deck.avial", *FOUR, "--out", "e=e.npy"], 1, snapshot(['BindError: --out e: the program has no such buffer', 'Hint: its buffers are: a, b, c, d'])),
    "no folder for an output": (["run", "deck.avial", *FOUR, "--out", "d=nowhere/d.npy"], 1, snapshot(['BindError: cannot write nowhere/d.npy: there is no folder nowhere'])),
    "no folder for a report": (["run", "deck.avial", *FOUR, "--report", "nowhere/r.html"], 1, snapshot(['BindError: cannot write nowhere/r.html: there is no folder nowhere'])),
    "no folder for a stage": (["lower", "deck.avial", *FOUR, "-o", "nowhere/stage"], 1, snapshot(['BindError: cannot write nowhere/stage: there is no folder nowhere'])),
    "stage": (["lower", "deck.avial", *FOUR, "--to", "mpy"], 1, snapshot(["BindError: there is no stage 'mpy'", 'Hint: there are: avial, placed, mpi, gpu, ptx:task3, loops, host, llvm, llvmir, object'])),
    "no command": ([], 2, snapshot(['avial-lab: error: the following arguments are required: COMMAND'])),
    "seed": (["run", "deck.avial", "--seed", "-1"], 2, snapshot(['avial-lab run: error: argument --seed: -1 is negative'])),
    "time": (["run", "deck.avial", "--timeout", "nan"], 2, snapshot(['avial-lab run: error: argument --timeout: nan is not a time limit; expected a number of seconds'])),
    "ranks in words": (["run", "deck.avial", "-n", "two"], 2, snapshot(["avial-lab run: error: argument -n/--ranks: invalid int value: 'two'"])),
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_fails_says_why(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On stderr, without a traceback, and before any rank is started."""
    monkeypatch.chdir(tmp_path)
    Path("deck.avial").write_text(DECK)
    Path("bad.avial").write_text(DECK.replace("addi", "adi", 1))
    Path("binary.avial").write_bytes(b"\x7fELF\xff\xfe")
    for name in ("empty.avial", "empty.npy"):
        Path(name).touch()
    arguments, code, expected = COMMANDS[command]
    monkeypatch.setattr(mpiexec, "run", None)
    try:
        ended_with = main(arguments)
    except SystemExit as usage:
        ended_with = usage.code
    out, err = capsys.readouterr()
    assert ended_with == code
    assert out == ""
    assert err.splitlines()[-1 if code == 2 else 0 :] == expected


def test_an_integer_division_by_zero_says_so() -> None:
    """Also where the reference is what divides."""
    text = """func.func @f(%a: memref<9xi32>, %b: memref<9xi32>) {
      affine.for %i = 0 to 9 {
        %x = affine.load %a[%i] : memref<9xi32>
        %y = affine.load %b[%i] : memref<9xi32>
        %z = arith.divsi %x, %y : i32
        affine.store %z, %a[%i] : memref<9xi32>
      }
      return
    }"""
    arrays = {"a": np.ones(9, np.int32), "b": np.zeros(9, np.int32)}
    program = avial_lab.compile(text, arrays=arrays, ranks=1)
    with pytest.raises(RunError, match="SIGFPE") as caught:
        program.reference()
    assert caught.value.hint is not None
    assert "division by zero" in caught.value.hint
