"""What the verifier of placements refuses: at which line, with which placements, and what mends it.
And that what it lets through is what operations may do.
"""

from __future__ import annotations

import pytest
from mlir import ir

from avial_lab.compiler.analysis.placements.check import check_placements
from avial_lab.compiler.frontends.mlir.foreign import read_mlir
from avial_lab.compiler.frontends.notation.source import Source
from avial_lab.compiler.ir.dialects import register
from avial_lab.core.errors import VerifyError

MESHES = """"distir.mesh"() {sym_name = "m", devices = dense<[0, 1]> : tensor<2xi64>} : () -> ()
"distir.mesh"() {sym_name = "n", devices = dense<[2, 3]> : tensor<2xi64>} : () -> ()
"""


def on(axes: str, shape: str = "4x6xf32", mesh: str = "m") -> str:
    return f'tensor<{shape}, #distir.on<@{mesh}, "{axes}">>'


def function(arguments: str, body: str, results: str, meshes: str = MESHES) -> str:
    return f"{meshes}func.func @f({arguments}) -> ({results}) {{\n{body}\n}}\n"


def checked(text: str) -> None:
    context = ir.Context()
    register(context)
    with context:
        module = read_mlir(Source(text, "test"))
        assert module is not None
        check_placements(module.operation)


def refused(text: str) -> VerifyError:
    with pytest.raises(VerifyError) as caught:
        checked(text)
    return caught.value


def elementwise(a: str, b: str, result: str) -> str:
    body = f"%z = arith.addf %x, %y : {on(a)}\nreturn %z : {on(result)}"
    return function(f"%x: {on(a)}, %y: {on(b)}", body, on(result)).replace(
        f"arith.addf %x, %y : {on(a)}",
        f'"arith.addf"(%x, %y) : ({on(a)}, {on(b)}) -> {on(result)}',
    )


def reduction(have: str, begun: str, result: str, number: str = "0.0") -> str:
    body = f"""%zero = arith.constant {number} : f32
%e = tensor.empty() : {on(begun, "6xf32")}
%i = linalg.fill ins(%zero : f32) outs(%e : {on(begun, "6xf32")}) -> {on(begun, "6xf32")}
%s = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>],
  iterator_types = ["reduction", "parallel"]}}
  ins(%x : {on(have)}) outs(%i : {on(begun, "6xf32")}) {{
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
}} -> {on(result, "6xf32")}
%r = "distir.all_reduce"(%s) : ({on(result, "6xf32")}) -> {on("copy", "6xf32")}
return %r : {on("copy", "6xf32")}"""
    return function(f"%x: {on(have)}", body, on("copy", "6xf32"))


def test_what_may_be() -> None:
    checked(elementwise("split 0", "split 0", "split 0").replace("arith.addf", "arith.mulf"))
    checked(reduction("split 0", "sum", "sum"))


def test_operands_that_are_divided_differently() -> None:
    error = refused(
        function(
            f"%x: {on('split 0')}, %w: {on('copy', '6x5xf32')}, %i: {on('split 1', '4x5xf32')}",
            f"%t = math.exp %x : {on('split 0')}\n"
            f"%y = linalg.matmul ins(%t, %w : {on('split 0')}, {on('copy', '6x5xf32')}) "
            f"outs(%i : {on('split 1', '4x5xf32')}) -> {on('split 1', '4x5xf32')}\n"
            f"return %y : {on('split 1', '4x5xf32')}",
            on("split 1", "4x5xf32"),
        )
    )
    assert error.message == (
        "linalg.matmul begins with it, and its result lies otherwise: operand 2, %i, lies as "
        '@m "split 1"'
    )
    assert error.hint == 'distir.all_to_all makes @m "split 0" of it'
    assert error.span is not None
    assert error.span.line == 5


def test_a_copy_beside_a_block() -> None:
    # arith's own verifier wants one type; linalg does not look at encodings.
    body = (
        f"%z = linalg.add ins(%x, %y : {on('split 0')}, {on('copy')}) outs(%x : {on('split 0')}) "
        f"-> {on('split 0')}\nreturn %z : {on('split 0')}"
    )
    error = refused(function(f"%x: {on('split 0')}, %y: {on('copy')}", body, on("split 0")))
    assert error.message == (
        "linalg.add divides the loop that runs over dimension 0 of it: operand 1, %y, lies as "
        '@m "copy"'
    )
    assert error.hint == 'distir.scatter makes @m "split 0" of it'


def test_mixed_meshes() -> None:
    body = (
        f"%z = linalg.add ins(%x, %y : {on('copy')}, {on('copy', mesh='n')}) outs(%x : "
        f"{on('copy')}) -> {on('copy')}\nreturn %z : {on('copy')}"
    )
    error = refused(function(f"%x: {on('copy')}, %y: {on('copy', mesh='n')}", body, on("copy")))
    assert error.message == 'linalg.add mixes meshes: @m "copy" and @n "copy"'
    assert error.hint == "distir.send brings a value from @n to @m"


def test_a_sum_that_begins_with_more_than_nothing() -> None:
    error = refused(reduction("split 0", "sum", "sum", number="1.0"))
    assert "linalg.fill makes a whole value" in error.message
    error = refused(reduction("split 0", "copy", "copy"))
    assert "begins with it, and its result lies otherwise" in error.message


def test_a_partial_result_that_is_handed_out() -> None:
    text = reduction("split 0", "sum", "sum")
    text = text.replace(f"return %r : {on('copy', '6xf32')}", f"return %s : {on('sum', '6xf32')}")
    error = refused(text.replace(f"-> ({on('copy', '6xf32')}) {{", f"-> ({on('sum', '6xf32')}) {{"))
    assert error.message.startswith("returns a value of which each device holds a part")
    assert error.hint == 'distir.all_reduce makes @m "copy" of it'


@pytest.mark.parametrize(
    ("move", "have", "made", "right"),
    [
        ("all_gather", "split 0", "copy", True),
        ("all_gather", "split 0", "split 1", False),
        ("all_to_all", "split 0", "split 1", True),
        ("scatter", "copy", "split 1", True),
        ("scatter", "split 1", "copy", False),
        ("reshard", "split 1", "copy", True),
        ("reshard", "split 1", "sum", False),
        ("all_reduce", "copy", "copy", False),
    ],
)
def test_moves(move: str, have: str, made: str, right: bool) -> None:
    moved = f'%y = "distir.{move}"(%x) : ({on(have)}) -> {on(made)}'
    body = f"{moved}\nreturn %y : {on(made)}"
    text = function(f"%x: {on(have)}", body, on(made))
    if right:
        checked(text)
    else:
        assert f"distir.{move} does not make" in refused(text).message


@pytest.mark.parametrize(
    ("mesh", "message"),
    [
        ("dense<[0, 0]> : tensor<2xi64>", "mesh @m names device 0 twice"),
        ("dense<[0, -1]> : tensor<2xi64>", "mesh @m names device -1"),
    ],
)
def test_meshes_that_cannot_be(mesh: str, message: str) -> None:
    meshes = f'"distir.mesh"() {{sym_name = "m", devices = {mesh}}} : () -> ()\n'
    error = refused(function(f"%x: {on('copy')}", f"return %x : {on('copy')}", on("copy"), meshes))
    assert error.message.startswith(message)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ("split 2", "splits dimension 2; the tensor has 2"),
        ("copy, copy", "has 2 entries, and the mesh 1 axes"),
        ("halves", "'halves' does not say how a tensor lies"),
    ],
)
def test_placements_that_cannot_be(axes: str, message: str) -> None:
    assert (
        message in refused(function(f"%x: {on(axes)}", f"return %x : {on(axes)}", on(axes))).message
    )


def test_a_mesh_that_is_not_there() -> None:
    error = refused(function(f"%x: {on('copy', mesh='q')}", f"return %x : {on('copy', mesh='q')}",
                             on("copy", mesh="q")))  # fmt: skip
    assert error.message == "there is no mesh @q"
    assert error.hint == "the meshes are: @m, @n"
