# ruff: noqa: E501  a line of the table holds a whole statement
"""What a mistake is told as: the cell's own line, a caret, and what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from inline_snapshot import snapshot
from mlir import ir

from avial_lab.compiler.frontends.mlir import parse_cell
from avial_lab.core.buffers import Binding, bind_arrays
from avial_lab.core.errors import AvialError, BindError, ParseError, VerifyError

DECK = Path(__file__).with_name("deck.avial").read_text()


def small(
    body: str = "%x = memref.load %a[%k]\n    memref.store %x, %b[%k]",
    *,
    head: str = "%a, %b",
    task: str = "%t = avial.task %cpu, %a, %b",
) -> str:
    """A program of one task whose body has the index %k."""
    return (
        f'avial.schedule {head} {{\n  %cpu = avial.target {{arch = "cpu"}}\n  {task} {{\n'
        f"    %k = arith.constant 3 : index\n    {body}\n  }}\n}}\n"
    )


def arrays(*names: str, read_only: str = "") -> Binding:
    found = {name: np.zeros(20, np.int32) for name in names}
    for name in read_only:
        found[name].flags.writeable = False
    return bind_arrays(found)


def told(
    text: str,
    context: ir.Context,
    *,
    binding: Binding | None = None,
    scalars: dict[str, float] | None = None,
    kind: type[AvialError],
) -> str:
    """The error of `text`, as its user reads it."""
    if binding is None:
        binding = arrays("a", "b", "c", "d") if text.count("avial.task") > 1 else arrays("a", "b")
    with pytest.raises(AvialError) as caught:
        parse_cell(text, cell="In [4]", context=context, binding=binding, scalars=scalars or {})
    assert type(caught.value) is kind
    return f"{caught.value}"


def test_undeclared_write(context: ir.Context) -> None:
    text = DECK.replace("memref.store %z, %d[%i]", "memref.store %z, %c[%i]")
    assert told(text, context, kind=VerifyError) == snapshot("""\
task 'task2' writes %c, which it does not list
In [4]:17:24
      memref.store %z, %c[%i]
                       ^
Hint: it lists %d and never touches it; write %d here, or list %c in its place\
""")


def test_undeclared_read(context: ir.Context) -> None:
    text = small(task="%t = avial.task %cpu, %b")
    assert told(text, context, kind=VerifyError) == snapshot("""\
task 't' reads %a, which it does not list
In [4]:5:22
    %x = memref.load %a[%k]
                     ^
Hint: add %a to the buffers of 't'\
""")


def test_undeclared_view(context: ir.Context) -> None:
    body = (
        "%v = memref.subview %a[0][4][1]\n    %x = memref.load %v[%k]\n    memref.store %x, %b[%k]"
    )
    text = small(body, task="%t = avial.task %cpu, %b")
    assert told(text, context, kind=VerifyError) == snapshot("""\
task 't' reads %v (a view of %a), which it does not list
In [4]:6:22
    %x = memref.load %v[%k]
                     ^
Hint: add %a to the buffers of 't'\
""")


def test_declared_write_that_never_happens(context: ir.Context) -> None:
    text = small(task="%t = avial.task %cpu reads(%a) writes(%b, %a)")
    assert told(text, context, kind=VerifyError) == snapshot("""\
task 't' lists %a as written, but its body never writes it
In [4]:3:45
  %t = avial.task %cpu reads(%a) writes(%b, %a) {
                                            ^
Hint: take it out of writes(…), put it into reads(…)\
""")


def test_write_listed_as_read(context: ir.Context) -> None:
    text = small(task="%t = avial.task %cpu reads(%a, %b)")
    assert told(text, context, kind=VerifyError) == snapshot("""\
task 't' writes %b, which it lists only as read
In [4]:6:22
    memref.store %x, %b[%k]
                     ^
Hint: add %b to writes(…)\
""")


def test_read_listed_as_written(context: ir.Context) -> None:
    body = "%x = memref.load %a[%k]\n    memref.store %x, %a[%k]"
    text = small(body, task="%t = avial.task %cpu writes(%a)")
    assert told(text, context, kind=VerifyError) == snapshot("""\
task 't' reads %a, which it lists only as written
In [4]:5:22
    %x = memref.load %a[%k]
                     ^
Hint: add %a to reads(…)\
""")


def test_listed_and_never_touched(context: ir.Context) -> None:
    text = small("%x = memref.load %a[%k]")
    assert told(text, context, kind=VerifyError) == snapshot("""\
task 't' lists %b, but its body never touches it
In [4]:3:29
  %t = avial.task %cpu, %a, %b {
                            ^
Hint: take %b out of the list\
""")


def test_roles_after_a_plain_list(context: ir.Context) -> None:
    text = small(task="%t = avial.task %cpu, %a writes(%b)")
    assert told(text, context, kind=ParseError) == snapshot("""\
writes(…) after a plain list of buffers
In [4]:3:28
  %t = avial.task %cpu, %a writes(%b) {
                           ^
Hint: either list them all (avial.task %cpu, %a) or give every one a role\
""")


def test_unknown_operation(context: ir.Context) -> None:
    text = small().replace("memref.load", "memref.laod")
    assert told(text, context, kind=ParseError) == snapshot("""\
unknown operation 'memref.laod'
In [4]:5:10
    %x = memref.laod %a[%k]
         ^
Hint: did you mean memref.load?\
""")


def test_unknown_dialect(context: ir.Context) -> None:
    text = small().replace("memref.load", "memory.load")
    assert told(text, context, kind=ParseError) == snapshot("""\
unknown operation 'memory.load'
In [4]:5:10
    %x = memory.load %a[%k]
         ^
Hint: did you mean memref.load?\
""")


def test_unknown_value(context: ir.Context) -> None:
    text = small().replace("store %x", "store %xx")
    assert told(text, context, kind=VerifyError) == snapshot("""\
unknown value %xx
In [4]:6:18
    memref.store %xx, %b[%k]
                 ^
Hint: did you mean %x?\
""")


def test_unknown_value_in_full_mlir(context: ir.Context) -> None:
    text = small("vector.print %first : i32")
    assert told(text, context, kind=ParseError) == snapshot("""\
unknown value %first
In [4]:5:18
    vector.print %first : i32
                 ^\
""")


def test_value_defined_later(context: ir.Context) -> None:
    text = small("%x = arith.addi %later, %k\n    %later = arith.constant 1 : index")
    assert told(text, context, kind=VerifyError) == snapshot("""\
unknown value %later
In [4]:5:21
    %x = arith.addi %later, %k
                    ^
Hint: %later is defined later, in line 6; move that up\
""")


def test_unknown_buffer(context: ir.Context) -> None:
    text = small(task="%t = avial.task %cpu, %a, %bb")
    assert told(text, context, kind=VerifyError) == snapshot("""\
unknown buffer %bb
In [4]:3:29
  %t = avial.task %cpu, %a, %bb {
                            ^
Hint: did you mean %b?\
""")


def test_too_few_operands(context: ir.Context) -> None:
    assert told(small("%x = arith.addi %k"), context, kind=ParseError) == snapshot("""\
expected ','
In [4]:5:23
    %x = arith.addi %k
                      ^
Hint: write it as: %z = arith.addi %x, %y\
""")


def test_too_many_operands(context: ir.Context) -> None:
    assert told(small("%x = arith.addi %k, %k, %k"), context, kind=ParseError) == snapshot("""\
',' where arith.addi has ended
In [4]:5:27
    %x = arith.addi %k, %k, %k
                          ^
Hint: write it as: %z = arith.addi %x, %y\
""")


def test_wrong_number_of_indices(context: ir.Context) -> None:
    assert told(small("%x = memref.load %a[%k, %k]"), context, kind=VerifyError) == snapshot("""\
memref.load has 2 indices for a buffer of 1 dimension (memref<20xi32>)
In [4]:5:25
    %x = memref.load %a[%k, %k]
                        ^\
""")


def test_literal_index(context: ir.Context) -> None:
    assert told(small("%x = memref.load %a[0]"), context, kind=VerifyError) == snapshot("""\
memref.load takes values as indices, not literals
In [4]:5:25
    %x = memref.load %a[0]
                        ^
Hint: %k = arith.constant 0\
""")


def test_index_of_another_type(context: ir.Context) -> None:
    body = "%j = arith.constant 1 : i32\n    %x = memref.load %a[%j]"
    assert told(small(body), context, kind=VerifyError) == snapshot("""\
%j indexes a buffer but is i32, not index
In [4]:6:25
    %x = memref.load %a[%j]
                        ^
Hint: convert it: %k = arith.index_cast %j to index\
""")


def test_stored_value_of_another_type(context: ir.Context) -> None:
    body = "%x = arith.constant 1.0 : f32\n    memref.store %x, %a[%k]"
    assert told(small(body), context, kind=VerifyError) == snapshot("""\
%x is f32 but %a holds i32
In [4]:6:18
    memref.store %x, %a[%k]
                 ^
Hint: convert the value before it is stored\
""")


def test_operands_of_two_types(context: ir.Context) -> None:
    body = "%x = memref.load %a[%k]\n    %y = arith.addi %x, %k"
    assert told(small(body), context, kind=VerifyError) == snapshot("""\
the operands of arith.addi have two types: %x is i32, %k is index
In [4]:6:25
    %y = arith.addi %x, %k
                        ^
Hint: convert one: %c = arith.index_cast %x : i32 to index\
""")


def test_full_mlir_of_another_type(context: ir.Context) -> None:
    body = "%x = memref.load %a[%k] : memref<20xf32>"
    assert told(small(body), context, kind=ParseError) == snapshot("""\
use of value '%a' expects different type than prior uses: 'memref<20xf32>' vs 'memref<20xi32>'
In [4]:5:22
    %x = memref.load %a[%k] : memref<20xf32>
                     ^
Hint: %a is memref<20xi32> before: write that, or convert it\
""")


def test_shape_of_the_array(context: ir.Context) -> None:
    assert told(small(head="%a: memref<21xi32>, %b"), context, kind=BindError) == snapshot("""\
%a is written memref<21xi32>, but the array 'a' has shape (20,)
In [4]:1:16
avial.schedule %a: memref<21xi32>, %b {
               ^
Hint: write %a: memref<20xi32>, or leave the type out\
""")


def test_dtype_of_the_array(context: ir.Context) -> None:
    assert told(small(head="%a: memref<20xf32>, %b"), context, kind=BindError) == snapshot("""\
%a is written memref<20xf32>, but the array 'a' holds i32
In [4]:1:16
avial.schedule %a: memref<20xf32>, %b {
               ^
Hint: write %a: memref<20xi32>, or leave the type out\
""")


def test_dimensions_of_the_array(context: ir.Context) -> None:
    assert told(small(head="%a: memref<?x?xi32>, %b"), context, kind=BindError) == snapshot("""\
%a is written memref<?x?xi32>, but the array 'a' has 1 dimension
In [4]:1:16
avial.schedule %a: memref<?x?xi32>, %b {
               ^
Hint: write %a: memref<20xi32>, or leave the type out\
""")


def test_layout_of_an_array_that_shares_memory(context: ir.Context) -> None:
    base = np.zeros((8, 8), np.int32)
    binding = bind_arrays({"a": base[:, :4], "b": base[:, 2:6]})
    text = (
        "avial.schedule %a: memref<8x4xi32>, %b {\n  %cpu = avial.target\n"
        "  avial.task %cpu, %a, %b { }\n}"
    )
    assert told(text, context, binding=binding, kind=BindError) == snapshot("""\
%a is written memref<8x4xi32>, but the array 'a' shares memory with another array and has strides (8, 1)
In [4]:1:16
avial.schedule %a: memref<8x4xi32>, %b {
               ^
Hint: write memref<8x4xi32, strided<[8, 1]>>, leave the type out, or pass a copy: a.copy()\
""")


def test_buffer_without_an_array(context: ir.Context) -> None:
    text = small(head="%a, %b, %e")
    assert told(text, context, kind=BindError) == snapshot("""\
buffer %e has no type and no array of the caller is named 'e'
In [4]:1:24
avial.schedule %a, %b, %e {
                       ^
Hint: pass the array e, or write its type: %e: memref<20xf32>\
""")


def test_array_that_is_no_buffer(context: ir.Context) -> None:
    binding = arrays("a", "b", "bb")
    assert told(small(), context, binding=binding, kind=BindError) == snapshot("""\
array 'bb' is not a buffer of the program
In [4]:1:1
avial.schedule %a, %b {
^
Hint: did you mean b?\
""")


def test_read_only_array(context: ir.Context) -> None:
    binding = arrays("a", "b", read_only="b")
    assert told(small(), context, binding=binding, kind=BindError) == snapshot("""\
task 't' writes %b, but the array 'b' is read-only
In [4]:6:22
    memref.store %x, %b[%k]
                     ^
Hint: pass a copy: b.copy()\
""")


def test_number_that_is_missing(context: ir.Context) -> None:
    text = small(head="%a, %b, %n: index")
    assert told(text, context, kind=BindError) == snapshot("""\
no value for %n (index)
In [4]:1:24
avial.schedule %a, %b, %n: index {
                       ^
Hint: pass n=…\
""")


def test_number_of_another_type(context: ir.Context) -> None:
    text = small(head="%a, %b, %n: index")
    assert told(text, context, scalars={"n": 2.5}, kind=BindError) == snapshot("""\
n=2.5 is not an integer, but %n is index
In [4]:1:24
avial.schedule %a, %b, %n: index {
                       ^
Hint: pass int(n)\
""")


def test_number_that_does_not_fit(context: ir.Context) -> None:
    text = small(head="%a, %b, %n: i8")
    assert told(text, context, scalars={"n": 256}, kind=BindError) == snapshot("""\
n=256 does not fit into i8
In [4]:1:24
avial.schedule %a, %b, %n: i8 {
                       ^\
""")


def test_after_an_unknown_task(context: ir.Context) -> None:
    text = DECK.replace("%cpu, %a, %b, %d {", "%cpu, %a, %b, %d after %tusk1 {")
    assert told(text, context, kind=VerifyError) == snapshot("""\
unknown task %tusk1
In [4]:12:46
  %task2 = avial.task %cpu, %a, %b, %d after %tusk1 {
                                             ^
Hint: did you mean %task1?\
""")


def test_after_a_later_task(context: ir.Context) -> None:
    text = DECK.replace("%cpu, %a, %b, %c {", "%cpu, %a, %b, %c after %task3 {")
    assert told(text, context, kind=VerifyError) == snapshot("""\
after %task3, which comes later (line 20)
In [4]:4:46
  %task1 = avial.task %cpu, %a, %b, %c after %task3 {
                                             ^
Hint: a task can wait only for tasks before it; move this one down\
""")


def test_no_task(context: ir.Context) -> None:
    assert told("avial.schedule %a, %b {\n}\n", context, kind=VerifyError) == snapshot("""\
the program has no task
In [4]:1:1
avial.schedule %a, %b {
^
Hint: add one: avial.schedule %a { %cpu = avial.target {arch = "cpu"} %t = avial.task %cpu, %a { … } }\
""")


def test_nothing(context: ir.Context) -> None:
    assert told("", context, kind=VerifyError) == snapshot("""\
the program has no task
In [4]:1:1
Hint: add one: avial.schedule %a { %cpu = avial.target {arch = "cpu"} %t = avial.task %cpu, %a { … } }\
""")


def test_two_tasks_of_one_name(context: ir.Context) -> None:
    text = DECK.replace("%task2", "%task1")
    assert told(text, context, kind=VerifyError) == snapshot("""\
two tasks are named task1; the other one is in line 4
In [4]:12:3
  %task1 = avial.task %cpu, %a, %b, %d {
  ^
Hint: give one of them another name\
""")


def test_no_target(context: ir.Context) -> None:
    text = small(task="%t = avial.task %a, %b")
    assert told(text, context, kind=VerifyError) == snapshot("""\
%a is memref<20xi32>, not a target
In [4]:3:19
  %t = avial.task %a, %b {
                  ^
Hint: the target comes first: %cpu\
""")


def test_unknown_target(context: ir.Context) -> None:
    text = small(task="%t = avial.task %cpi, %a, %b")
    assert told(text, context, kind=VerifyError) == snapshot("""\
unknown target %cpi
In [4]:3:19
  %t = avial.task %cpi, %a, %b {
                  ^
Hint: did you mean %cpu?\
""")


def test_target_that_is_no_string(context: ir.Context) -> None:
    text = small().replace('"cpu"', "7")
    assert told(text, context, kind=VerifyError) == snapshot("""\
arch of avial.target is 7 : i64, not a string
In [4]:2:3
  %cpu = avial.target {arch = 7}
  ^
Hint: arch = "…"\
""")


def test_attribute_mlir_cannot_read(context: ir.Context) -> None:
    text = small().replace('"cpu"', "x86")
    assert told(text, context, kind=ParseError) == snapshot("""\
expected attribute value
In [4]:2:30
  %cpu = avial.target {arch = x86}
                             ^
Hint: write it as: %cpu = avial.target {arch = "x86_64"}\
""")


def test_missing_brace(context: ir.Context) -> None:
    assert told(small()[:-3], context, kind=ParseError) == snapshot("""\
'{' is never closed
In [4]:1:23
avial.schedule %a, %b {
                      ^
Hint: add the missing '}'\
""")


def test_stray_brace(context: ir.Context) -> None:
    assert told(small() + "}\n", context, kind=ParseError) == snapshot("""\
'}' closes nothing
In [4]:9:1
}
^
Hint: delete it\
""")


def test_stray_text(context: ir.Context) -> None:
    assert told(small() + "and now?\n", context, kind=ParseError) == snapshot("""\
unknown operation 'and'
In [4]:9:1
and now?
^\
""")


def test_bracket_that_does_not_fit(context: ir.Context) -> None:
    text = small("%x = memref.load %a[%k)")
    assert told(text, context, kind=ParseError) == snapshot("""\
')' where ']' should close the '[' of line 5
In [4]:5:27
    %x = memref.load %a[%k)
                          ^\
""")


def test_word_of_the_loop(context: ir.Context) -> None:
    text = small("scf.parallel %i = 0 until 20 { }")
    assert told(text, context, kind=ParseError) == snapshot("""\
expected 'to' after the lower bounds
In [4]:5:25
    scf.parallel %i = 0 until 20 { }
                        ^\
""")


def test_bounds_of_another_number(context: ir.Context) -> None:
    text = small("scf.parallel %i, %j = 0 to 20, 30 { }")
    assert told(text, context, kind=VerifyError) == snapshot("""\
2 loop variables but 1 lower bounds
In [4]:5:27
    scf.parallel %i, %j = 0 to 20, 30 { }
                          ^\
""")


def test_step_of_zero(context: ir.Context) -> None:
    text = small("scf.for %i = 0 to 20 step 0 { }")
    assert told(text, context, kind=VerifyError) == snapshot("""\
the step is 0; a loop counts upwards
In [4]:5:31
    scf.for %i = 0 to 20 step 0 { }
                              ^\
""")


@pytest.mark.parametrize("step", [0, -1])
def test_step_that_is_a_constant(step: int, context: ir.Context) -> None:
    text = f"""func.func @f(%a: memref<20xi32>, %b: memref<20xi32>) {{
      %low = arith.constant 0 : index
      %high = arith.constant 8 : index
      %by = arith.constant {step} : index
      scf.for %i = %low to %high step %by {{
        %x = memref.load %a[%i] : memref<20xi32>
        memref.store %x, %b[%i] : memref<20xi32>
      }}
      return
    }}"""
    said = told(text, context, kind=VerifyError)
    assert said.startswith(f"the step is {step}; a loop counts upwards\nIn [4]:5:")


def test_missing_comma(context: ir.Context) -> None:
    text = small(task="%t = avial.task %cpu, %a %b")
    assert told(text, context, kind=ParseError) == snapshot("""\
expected '{' after the head of avial.task
In [4]:3:28
  %t = avial.task %cpu, %a %b {
                           ^
Hint: separate buffers by ','\
""")


def test_name_used_twice(context: ir.Context) -> None:
    text = small("%x = memref.load %a[%k]\n    %x = memref.load %b[%k]")
    assert told(text, context, kind=ParseError) == snapshot("""\
redefinition of SSA value '%x'
In [4]:6:5
    %x = memref.load %b[%k]
    ^
Hint: give one of the two another name\
""")


def test_task_outside_a_schedule(context: ir.Context) -> None:
    text = 'avial.target {arch = "cpu"}\n'
    assert told(text, context, kind=VerifyError) == snapshot("""\
avial.target is outside avial.schedule
In [4]:1:1
avial.target {arch = "cpu"}
^
Hint: put it into avial.schedule %a, … { … }\
""")


def test_launch_that_writes_nothing(context: ir.Context) -> None:
    text = small("gpu.launch {\n      %x = memref.load %a[%k]\n    }")
    assert told(text, context, kind=VerifyError) == snapshot("""\
gpu.launch has no sizes, and its body writes no buffer they could follow from
In [4]:5:5
    gpu.launch {
    ^
Hint: give sizes: gpu.launch blocks(…) in (…) threads(…) in (…) { … }\
""")


def test_launch_too_wide_for_its_barrier(context: ir.Context) -> None:
    text = (
        "avial.schedule %a: memref<2000xi32> {\n  %gpu = avial.target\n  avial.task %gpu, %a {\n"
        "    gpu.launch {\n      %i = gpu.thread_id x\n      %x = memref.load %a[%i]\n"
        "      gpu.barrier\n      memref.store %x, %a[%i]\n    }\n  }\n}\n"
    )
    binding = bind_arrays({})
    assert told(text, context, binding=binding, kind=VerifyError) == snapshot("""\
gpu.barrier needs all 2000 threads in one block, and a block has at most 1024
In [4]:4:5
    gpu.launch {
    ^
Hint: give sizes: gpu.launch blocks(…) in (…) threads(…) in (…) { … }\
""")


def test_converge_on_a_whole_array(context: ir.Context) -> None:
    text = "avial.schedule %a, %b {\n  avial.converge until %a lt 0.5 max 9 {\n  }\n}\n"
    assert told(text, context, kind=VerifyError) == snapshot("""\
%a is memref<20xi32>; 'until' compares a buffer of one element
In [4]:2:24
  avial.converge until %a lt 0.5 max 9 {
                       ^
Hint: reduce it into a memref of one element first\
""")


def test_converge_without_a_bound(context: ir.Context) -> None:
    text = "avial.schedule %r: memref<f32> {\n  avial.converge until %r lt 0.5 {\n  }\n}\n"
    assert told(text, context, binding=bind_arrays({}), kind=ParseError) == snapshot("""\
expected 'max' after the condition
In [4]:2:34
  avial.converge until %r lt 0.5 {
                                 ^
Hint: bound the rounds: max 1000\
""")


def test_character_nobody_sees(context: ir.Context) -> None:
    text = small().replace("%cpu = ", "%cpu =\0")
    assert told(text, context, kind=ParseError) == snapshot("""\
a character that cannot be printed (U+0000)
In [4]:2:9
  %cpu =\x00avial.target {arch = "cpu"}
        ^
Hint: delete it\
""")


def test_generic_form_is_checked_too(context: ir.Context) -> None:
    text = """\
func.func @main(%a: memref<4xi32>) {
  %ref = builtin.unrealized_conversion_cast %a : memref<4xi32> to !avial.buffer_ref
  "avial.schedule"(%ref) ({
    %cpu = "avial.target"() {name = "cpu"} : () -> !avial.target_ref
    %t = "avial.task"(%cpu, %ref) ({
      %k = arith.constant 1 : index
      %x = memref.load %a[%k] : memref<4xi32>
      memref.store %x, %a[%k] : memref<4xi32>
      omp.terminator
    }) {name = "t", operandSegmentSizes = array<i32: 1, 1, 0, 0>}
      : (!avial.target_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref) -> ()
}
"""
    assert told(text, context, binding=bind_arrays({}), kind=VerifyError) == snapshot("""\
task 't' writes %a, which it lists only as read
In [4]:8:24
      memref.store %x, %a[%k] : memref<4xi32>
                       ^
Hint: add %a to writes(…)\
""")


def test_of_brackets_that_do_not_fit_the_inner_one_is_shown(context: ir.Context) -> None:
    text = 'func.func @f(%a: memref<4xf32> {\n  avial.name = "a")}) {\n}'
    with pytest.raises(ParseError, match=r"should close the '\{' of line 1") as caught:
        parse_cell(text, cell="In [4]", context=context)
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (2, 19)
    text = 'func.func @f(%a: memref<4xf32> {avial.name (= "a"}) {\n}'
    with pytest.raises(ParseError, match=r"'\(' is never closed") as caught:
        parse_cell(text, cell="In [4]", context=context)
    assert caught.value.span is not None
    assert caught.value.span.column == text.index("(=") + 1


@pytest.mark.parametrize(
    ("load", "hint"),
    [
        ("affine.load %a[i] : memref<8xf64>", "values begin with %: write %i"),
        (
            "affine.load %a[%i] : memref<8xf32>",
            "%a is memref<8xf64> before: write that, or convert it",
        ),
    ],
)
def test_a_slip_in_a_subscript_or_a_type(load: str, hint: str, context: ir.Context) -> None:
    text = (
        "func.func @f(%a: memref<8xf64>) {\n"
        f"  affine.for %i = 0 to 8 {{\n    %x = {load}\n  }}\n  return\n}}"
    )
    with pytest.raises(AvialError) as caught:
        parse_cell(text, cell="t", context=context)
    assert caught.value.hint == hint
