# ruff: noqa: E501  a line of the table holds a whole mistake
"""Plain functions, as Polygeist, mlir-opt and front ends for neural networks write them: all of
MLIR is read, names and places are the text's, mistakes are told.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from inline_snapshot import snapshot
from mlir import ir

from avial_lab.compiler.frontends.mlir import is_plain, parse_cell, print_module
from avial_lab.compiler.frontends.notation.header import program_names
from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.ir.locations import name_of, span_of
from avial_lab.compiler.ir.program import functions_of, has_body, program_function, symbol_of
from avial_lab.core.buffers import bind_arrays
from avial_lab.core.errors import AvialError
from kernels import Dataset, load, names

POLYGEIST = """\
#set = affine_set<(d0) : (d0 - 1 >= 0)>
module attributes {dlti.dl_spec = #dlti.dl_spec<#dlti.dl_entry<"dlti.endianness", "little">, \
#dlti.dl_entry<i64, dense<64> : vector<2xi32>>>, llvm.data_layout = "e-m:e-i64:64-S128", \
llvm.target_triple = "x86_64-unknown-linux-gnu", "polygeist.target-cpu" = "x86-64", \
"polygeist.target-features" = "+cx8,+sse2"} {
  func.func @kernel_scale(%arg0: i32, %arg1: i32, %arg2: i32, %arg3: f32, \
%arg4: memref<?x1000xf32>, %arg5: memref<?x1000xf32>) \
attributes {llvm.linkage = #llvm.linkage<external>} {
    %c0_i32 = arith.constant 0 : i32
    %0 = arith.index_cast %arg0 : i32 to index
    %1 = arith.index_cast %arg1 : i32 to index
    affine.for %arg6 = 0 to %0 {
      affine.for %arg7 = 0 to %1 {
        %2 = affine.load %arg4[%arg6, %arg7] : memref<?x1000xf32>
        affine.if #set(%arg7) {
          %3 = arith.mulf %2, %arg3 : f32
          affine.store %3, %arg5[%arg6, %arg7] : memref<?x1000xf32>
        }
      }
    }
    return
  }
}
"""
WHILE = """\
module {
  func.func private @sqrt(f64) -> f64
  func.func @newton(%arg0: f64, %arg1: memref<1xf64>) -> i32 attributes {llvm.linkage = #llvm.linkage<external>} {
    %c0 = arith.constant 0 : index
    %c1_i32 = arith.constant 1 : i32
    %c0_i32 = arith.constant 0 : i32
    %cst = arith.constant 1.000000e-01 : f64
    %alloca = memref.alloca() : memref<f64>
    %0 = call @sqrt(%arg0) : (f64) -> f64
    memref.store %0, %alloca[] : memref<f64>
    %1 = scf.while (%arg2 = %c0_i32) : (i32) -> i32 {
      %2 = memref.load %alloca[] : memref<f64>
      %3 = arith.cmpf ogt, %2, %cst : f64
      scf.condition(%3) %arg2 : i32
    } do {
    ^bb0(%arg2: i32):
      %2 = memref.load %alloca[] : memref<f64>
      %3 = arith.mulf %2, %cst : f64
      memref.store %3, %alloca[] : memref<f64>
      memref.store %3, %arg1[%c0] : memref<1xf64>
      %4 = arith.addi %arg2, %c1_i32 : i32
      scf.yield %4 : i32
    }
    return %1 : i32
  }
}
"""
HELPERS = """\
func.func @row(%x: memref<?xf32>, %i: index) {
  %v = memref.load %x[%i] : memref<?xf32>
  memref.store %v, %x[%i] : memref<?xf32>
  return
}
func.func private @spare() { return }
func.func @all(%y: memref<?xf32>, %n: index) {
  affine.for %k = 0 to %n { func.call @row(%y, %k) : (memref<?xf32>, index) -> () }
  return
}
"""


def parsed(text: str, function: str | None = None, **given: object) -> ir.Module:
    arrays = {k: v for k, v in given.items() if isinstance(v, np.ndarray)}
    numbers = {k: v for k, v in given.items() if isinstance(v, int | float)}
    return parse_cell(
        text,
        cell="In [1]",
        context=ir.Context(),
        binding=bind_arrays(arrays) if given else None,
        scalars=numbers,
        function=function,
    )


def told(text: str, function: str | None = None, **given: object) -> str:
    with pytest.raises(AvialError) as caught:
        parsed(text, function, **given)
    return f"{type(caught.value).__name__}: {caught.value}"


def arguments(module: ir.Module) -> dict[str, str]:
    """The program's arguments: name and type."""
    block = program_function(module).regions[0].blocks[0]
    return {name_of(a.location) or "?": str(a.type) for a in block.arguments}


def generic(text: str) -> str:
    context = ir.Context()
    register(context)
    module = ir.Module.parse(text, context)
    return str(module.operation.get_asm(print_generic_op_form=True))


# What is read -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", names())
def test_a_kernel_is_read_as_mlir_reads_it(name: str, context: ir.Context) -> None:
    kernel = load(name)
    for sizes in (kernel.datasets[Dataset.MINI], None):
        text = kernel.mlir(kernel.elements[0], sizes)
        ours = parsed(text)
        assert is_plain(ours)
        shown = str(ours.operation.get_asm(use_local_scope=True))
        shown = re.sub(r" \{avial\.name = \"[^\"]*\"\}", "", shown)
        plain = ir.Module.parse(text, context).operation.get_asm(use_local_scope=True)
        assert shown == plain
        assert program_names(text) == tuple(kernel.arguments)


def test_what_polygeist_says_of_its_machine_is_left_out() -> None:
    module = parsed(POLYGEIST)
    assert len(module.operation.attributes) == 0
    assert list(arguments(module)) == [f"arg{k}" for k in range(6)]
    assert "llvm.linkage" in program_function(module).attributes


def test_a_dialect_that_nobody_knows_is_refused_only_as_an_operation() -> None:
    attribute = POLYGEIST.replace(
        "attributes {llvm.linkage =", 'attributes {some.thing = #some.thing<"x">, llvm.linkage ='
    )
    assert "some.thing" not in str(parsed(attribute))
    text = 'func.func @f(%a: memref<4xf32>) {\n  "some.op"(%a) : (memref<4xf32>) -> ()\n  return\n}'
    assert told(text) == snapshot("""\
VerifyError: unknown operation 'some.op'
In [1]:2:3
  "some.op"(%a) : (memref<4xf32>) -> ()
  ^\
""")


def test_promises_to_llvm_are_left_out() -> None:
    text = "func.func @f(%a: memref<4xf32> {llvm.noalias, llvm.align = 64 : i64}) { return }"
    assert "llvm" not in str(parsed(text))


@pytest.mark.parametrize(
    "text", [POLYGEIST.replace("vector<2xi32>", "vector<2xi64>"), WHILE, HELPERS]
)
def test_the_generic_form_is_read_alike(text: str) -> None:
    form = generic(text.replace('"polygeist', '"llvm.polygeist'))
    ours = parsed(form)
    pretty = parsed(str(ir.Module.parse(form, ours.context)))
    assert str(ours) == str(pretty)
    assert len(program_names(form)) == len(program_names(text))


def test_what_the_notation_does_not_read_mlir_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names and places stay those of the text."""
    from avial_lab.compiler.frontends.mlir import cells
    from avial_lab.core.errors import ParseError

    def refuse(*_: object, **__: object) -> None:
        raise ParseError("not this")

    usual = parsed(WHILE)
    monkeypatch.setattr(cells, "elaborate", refuse)
    alone = parsed(WHILE)
    assert arguments(alone) == arguments(usual)
    assert str(alone.operation.get_asm(use_name_loc_as_prefix=True)) == str(
        usual.operation.get_asm(use_name_loc_as_prefix=True)
    )
    function = program_function(alone)
    span = span_of(function.location)
    assert span is not None
    assert (span.cell, span.line) == ("In [1]", 3)
    with pytest.raises(ParseError, match="not this"):
        parsed(WHILE.replace("scf.yield %4", "scf.yield %5"))


def test_short_notation_works_in_a_plain_function() -> None:
    text = (
        "func.func @f(%a, %n: index) {\n  affine.for %i = 0 to %n {\n    %x = memref.load %a[%i]\n"
    )
    text += "    memref.store %x, %a[%i]\n  }\n}"
    module = parsed(text, a=np.zeros(5, np.float32), n=5)
    assert arguments(module) == {"a": "memref<5xf32>"}


def test_it_prints_back_as_itself() -> None:
    module = parsed(POLYGEIST)
    assert str(parsed(print_module(module))) == str(module)


# Which function -----------------------------------------------------------------------------------


def test_the_function_that_nobody_calls_is_meant() -> None:
    module = parsed(HELPERS)
    assert [symbol_of(f) for f in functions_of(module)] == ["row", "all"]
    assert symbol_of(program_function(module)) == "all"
    assert program_names(HELPERS) == ("y", "n")


def test_a_function_by_name() -> None:
    module = parsed(HELPERS, "row")
    assert [symbol_of(f) for f in functions_of(module)] == ["row"]
    assert program_names(HELPERS, function="row") == ("x", "i")
    assert program_names(HELPERS, function="@row") == ("x", "i")


def test_declarations_stay_where_they_are_called() -> None:
    assert [symbol_of(f) for f in functions_of(parsed(WHILE))] == ["sqrt", "newton"]
    unused = WHILE.replace("call @sqrt(%arg0) : (f64) -> f64", "arith.negf %arg0 : f64")
    assert [symbol_of(f) for f in functions_of(parsed(unused))] == ["newton"]


def test_memory_spaces_and_scripts_go() -> None:
    text = """\
module attributes {transform.with_named_sequence} {
  memref.global "private" constant @w : memref<4xf32, 2> = dense<1.0>
  func.func private @get(%x: memref<?xf32, 1>, %i: index) -> f32 {
    %v = memref.load %x[%i] : memref<?xf32, 1>
    return %v : f32
  }
  func.func @f(%a: memref<4xf32, 1>, %i: index) -> memref<4xf32> {
    %w = memref.get_global @w : memref<4xf32, 2>
    %t = memref.alloc() : memref<4xf32, 2>
    memref.copy %w, %t : memref<4xf32, 2> to memref<4xf32, 2>
    %d = memref.memory_space_cast %t : memref<4xf32, 2> to memref<4xf32>
    %c = memref.cast %a : memref<4xf32, 1> to memref<?xf32, 1>
    %v = func.call @get(%c, %i) : (memref<?xf32, 1>, index) -> f32
    memref.store %v, %d[%i] : memref<4xf32>
    return %d : memref<4xf32>
  }
  transform.named_sequence @one(%m: !transform.any_op) {
    transform.yield
  }
  module attributes {transform.with_named_sequence} {
    transform.named_sequence @two(%m: !transform.any_op) {
      transform.yield
    }
  }
}
"""
    module = parsed(text, a=np.zeros(4, np.float32), i=1)
    assert arguments(module) == {"a": "memref<4xf32>", "result0": "memref<4xf32>"}
    assert not re.search(r"memref<[^>]*, \d|space|transform", str(module))


def test_what_is_called_is_there() -> None:
    nowhere = WHILE.replace("@sqrt", "@no_such_function")
    assert told(nowhere) == snapshot("""\
VerifyError: function @no_such_function has no body, and the C library has none of that name
In [1]:2:3
  func.func private @no_such_function(f64) -> f64
  ^
Hint: define it in the file, or leave its calls out\
""")


def test_several_functions_are_listed() -> None:
    two = HELPERS.replace("func.call @row(%y, %k) : (memref<?xf32>, index) -> ()", "")
    assert told(two) == snapshot("""\
VerifyError: the program has 2 functions: @row, @all
In [1]:7:1
func.func @all(%y: memref<?xf32>, %n: index) {
^
Hint: say which: function='row' (--fn row)\
""")
    assert told(two, "rows").splitlines()[-1] == "Hint: did you mean row?"
    assert told("func.func private @f()").splitlines()[0] == snapshot(
        "VerifyError: the program has no function with a body"
    )


def test_arguments_of_one_name_are_of_the_types_of_their_functions() -> None:
    two = """\
func.func @f(%arg0: memref<8x8xf64>, %arg1: i32) { return }
func.func @g(%arg0: memref<?xindex>) { return }
"""
    matrix, places = np.zeros((8, 8)), np.zeros(5, np.int64)
    assert arguments(parsed(two, "f", arg0=matrix)) == {"arg0": "memref<8x8xf64>"}
    assert arguments(parsed(two, "g", arg0=places)) == {"arg0": "memref<5xindex>"}
    assert told(two, "g", arg0=matrix) == snapshot("""\
BindError: %arg0 is written memref<?xindex>, but the array 'arg0' holds f64
In [1]:2:14
func.func @g(%arg0: memref<?xindex>) { return }
             ^
Hint: write %arg0: memref<8x8xf64>, or leave the type out\
""")


def test_a_function_that_calls_itself_keeps_its_numbers() -> None:
    text = """\
func.func @f(%n: i32, %r: memref<i32>) {
  %one = arith.constant 1 : i32
  %less = arith.subi %n, %one : i32
  func.call @f(%less, %r) : (i32, memref<i32>) -> ()
  return
}
"""
    module = parsed(text, r=np.zeros((), np.int32), n=5)
    assert [symbol_of(f) for f in functions_of(module) if has_body(f)] == ["f_0", "f"]
    assert "call @f_0(%0, %arg0)" in str(program_function(module))


def test_statements_outside_of_a_function() -> None:
    assert told("%x = arith.constant 3 : i32\n" + HELPERS) == snapshot("""\
VerifyError: a statement is outside any function
In [1]:1:1
%x = arith.constant 3 : i32
^
Hint: put it into func.func @f(…) { … }, or into an avial.schedule\
""")


def test_a_task_without_a_schedule_is_no_plain_function() -> None:
    text = 'func.func @f(%a: memref<4xf32>) {\n  %c = avial.target {arch = "cpu"}\n  return\n}'
    assert told(text).splitlines()[0] == snapshot(
        "VerifyError: avial.target is outside avial.schedule"
    )


# Arguments ----------------------------------------------------------------------------------------


def test_numbers_are_bound_and_unused_ones_may_be_missing() -> None:
    array = np.zeros((7, 1000), np.float32)
    module = parsed(POLYGEIST, arg0=7, arg1=5, arg3=2.5, arg4=array, arg5=array.copy())
    assert arguments(module) == {"arg4": "memref<7x1000xf32>", "arg5": "memref<7x1000xf32>"}
    shown = str(module)
    assert "arith.constant 7 : i32" in shown
    assert "arith.constant 2.500000e+00 : f32" in shown


ONE = "func.func @f(%a: memref<?x4xf32>, %n: i32) {\n  %i = arith.index_cast %n : i32 to index\n  return\n}"
GOOD = np.zeros((2, 4), np.float32)
MISTAKES = {
    "element": ({"a": np.zeros((2, 4)), "n": 1}, snapshot("%a is written memref<?x4xf32>, but the array 'a' holds f64 → write %a: memref<2x4xf64>, or leave the type out")),
    "shape": ({"a": np.zeros((2, 5), np.float32), "n": 1}, snapshot("%a is written memref<?x4xf32>, but the array 'a' has shape (2, 5) → write %a: memref<2x5xf32>, or leave the type out")),
    "rank": ({"a": np.zeros(4, np.float32), "n": 1}, snapshot("%a is written memref<?x4xf32>, but the array 'a' has 1 dimension → write %a: memref<4xf32>, or leave the type out")),
    "unknown": ({"a": GOOD, "n": 1, "m": 1}, snapshot("number 'm' is not a buffer of the program → its buffers: %a, %n")),
    "near": ({"a": GOOD, "n": 1, "nn": 1}, snapshot("number 'nn' is not a buffer of the program → did you mean n?")),
    "missing": ({"a": GOOD}, snapshot("no value for %n (i32) → pass n=…")),
    "no array": ({"n": 1}, snapshot("buffer %a is memref<?x4xf32>, and no array gives its size → pass the array a")),
    "number for an array": ({"a": 3, "n": 1}, snapshot("%a is memref<?x4xf32>, an array, but a number is given → pass the array a")),
    "array for a number": ({"a": GOOD, "n": np.zeros(3, np.int32)}, snapshot("%n is i32, a number, but an array is given → pass a number: n.item(), where the array has one element")),
    "fraction": ({"a": GOOD, "n": 1.5}, snapshot("n=1.5 is not an integer, but %n is i32 → pass int(n)")),
    "too large": ({"a": GOOD, "n": 2**40}, snapshot("n=1099511627776 does not fit into i32 → None")),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_arguments_that_do_not_fit(mistake: str) -> None:
    given, expected = MISTAKES[mistake]
    with pytest.raises(AvialError) as caught:
        parsed(ONE, **given)
    assert f"{caught.value.message} → {caught.value.hint}" == expected
    assert caught.value.span is not None


def test_an_argument_that_is_neither() -> None:
    assert told("func.func @f(%p: !llvm.ptr) { return }") == snapshot("""\
VerifyError: %p is !llvm.ptr, neither a memref nor a number
In [1]:1:14
func.func @f(%p: !llvm.ptr) { return }
             ^
Hint: write it as a memref, %a: memref<20xf32> for example\
""")


def test_a_read_only_array() -> None:
    frozen = np.zeros((7, 1000), np.float32)
    frozen.flags.writeable = False
    given = {"arg0": 7, "arg1": 5, "arg3": 2.5}
    parsed(POLYGEIST, **given, arg4=frozen, arg5=np.zeros((7, 1000), np.float32))
    assert told(POLYGEIST, **given, arg4=np.zeros((7, 1000), np.float32), arg5=frozen) == snapshot("""\
BindError: the function writes %arg5, but the array 'arg5' is read-only
In [1]:12:11
          affine.store %3, %arg5[%arg6, %arg7] : memref<?x1000xf32>
          ^
Hint: pass a copy: arg5.copy()\
""")


# Results ------------------------------------------------------------------------------------------


def test_a_number_that_is_returned_is_an_array_of_its_own() -> None:
    module = parsed(WHILE)
    assert list(arguments(module)) == ["arg0", "arg1", "result0"]
    assert arguments(module)["result0"] == "memref<i32>"


RETURNS = """\
func.func @f(%x: memref<?xf32>, %n: index) -> (memref<?xf32>, memref<?xf32>, memref<4xf32>) {
  %open = memref.alloc(%n) : memref<?xf32>
  %own = memref.alloc() : memref<4xf32>
  return %x, %open, %own : memref<?xf32>, memref<?xf32>, memref<4xf32>
}
"""


def test_memory_that_is_returned() -> None:
    """The caller's own array is no result; an open size follows from the arguments."""
    assert arguments(parsed(RETURNS)) == {
        "x": "memref<?xf32>", "n": "index", "result1": "memref<?xf32>", "result2": "memref<4xf32>",
    }  # fmt: skip
    bound = parsed(RETURNS, x=np.zeros(3, np.float32), n=6)
    assert arguments(bound) == {
        "x": "memref<3xf32>", "result1": "memref<6xf32>", "result2": "memref<4xf32>",
    }  # fmt: skip
    assert "memref.alloc() : memref<4xf32>" not in str(bound)


def test_tensors_become_memory() -> None:
    text = """\
func.func @relu(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %zero = arith.constant 0.0 : f32
  %r = linalg.map ins(%x : tensor<?x3xf32>) outs(%x : tensor<?x3xf32>) (%in: f32, %old: f32) {
    %p = arith.maximumf %in, %zero : f32
    linalg.yield %p : f32
  }
  return %r : tensor<?x3xf32>
}
"""
    module = parsed(text, x=np.zeros((5, 3), np.float32))
    assert arguments(module) == {"x": "memref<5x3xf32>", "result0": "memref<5x3xf32>"}
    assert "tensor" not in str(module)


def test_tosa_becomes_loops() -> None:
    text = """\
module attributes {torch.debug_module_name = "M"} {
  ml_program.global private mutable @global_seed(dense<0> : tensor<i64>) : tensor<i64>
  func.func @forward(%x: tensor<4x8xf32> {func.read_access}) -> (tensor<4x8xf32> {func.write_access}) {
    %0 = tosa.add %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
}
"""
    module = parsed(text)
    assert arguments(module) == {"x": "memref<4x8xf32>", "result0": "memref<4x8xf32>"}
    assert "tosa" not in str(module)
    assert "linalg.generic" in str(module)


def test_a_tensor_without_memory() -> None:
    text = "func.func @f(%x: tensor<4xf32>) -> tensor<1xindex> {\n"
    text += "  %y = shape.shape_of %x : tensor<4xf32> -> tensor<1xindex>\n"
    text += "  return %y : tensor<1xindex>\n}\n"
    assert told(text) == snapshot("""\
VerifyError: a tensor could not be bufferized: op was not bufferized
In [1]:2:3
  %y = shape.shape_of %x : tensor<4xf32> -> tensor<1xindex>
  ^\
""")


def test_a_result_that_is_neither() -> None:
    text = "func.func @f(%z: complex<f32>) -> complex<f32> { return %z : complex<f32> }"
    assert told(text).splitlines()[0] == snapshot(
        "VerifyError: @f returns complex<f32>, neither a memref nor a number"
    )


# Names without MLIR -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("func.func private @g(f32) -> f32\nfunc.func @f(%a: f32) { return }", ("a",)),
        ("func.func private @g(f32)\nllvm.func @h() { llvm.return }\nfunc.func @f(%a: f32) { }", ("a",)),
        ("func.func @f(%a: memref<4xf32> {x.y = {z = 1}}) -> f32 attributes {p = {}} { }", ("a",)),
        ("func.func @f() { return }", ()),
        ("// func.func @g(%x: f32) {}\nfunc.func @f(%a: f32) { }", ("a",)),
        ('func.func @"a b"(%a: f32) { func.call @"a b"(%a) : (f32) -> () }', ("a",)),
        ("", ()),
    ],
)  # fmt: skip
def test_names_without_mlir(text: str, expected: tuple[str, ...]) -> None:
    assert program_names(text) == expected


LOCATED = """\
#loc = loc("k.c":3:6)
module {
  func.func @k(%A: memref<8x8xf32> loc("k.c":3:10), %n: index loc("k.c":3:20)) {
    affine.for %i = 0 to %n {
      %0 = affine.load %A[%i, 0] : memref<8x8xf32> loc(#loc2)
      affine.store %0, %A[0, %i] : memref<8x8xf32> loc(#loc2)
    } loc(#loc1)
    return loc(#loc)
  } loc(#loc)
} loc(unknown)
#loc1 = loc("k.c":4:3)
#loc2 = loc(fused["k.c":5:3, "k.c":5:9])
"""


@pytest.mark.parametrize("notation", [True, False])
def test_places_of_a_front_end_are_kept(notation: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the names of the arguments: callers give arrays by them."""
    from avial_lab.compiler.frontends.mlir import cells
    from avial_lab.core.errors import ParseError

    def refuse(*_: object, **__: object) -> None:
        raise ParseError("not this")

    if not notation:
        monkeypatch.setattr(cells, "elaborate", refuse)
    module = parsed(LOCATED)
    assert arguments(module) == {"A": "memref<8x8xf32>", "n": "index"}
    loop = program_function(module).regions[0].blocks[0].operations[0]
    span = span_of(loop.location)
    assert span is not None
    assert str(span) == "k.c:4:3"
