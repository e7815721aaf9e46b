"""Functions on tensors written as models in ONNX, run by ONNX's own evaluator (and by ONNX Runtime
where it is installed), against the reference run of the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from avial_lab.compiler.frontends.onnx import convert
from avial_lab.compiler.requests import Export, Source
from avial_lab.compiler.worker.export import exported
from avial_lab.core.errors import AvialError, PassError
from tests.compiler.frontends.onnx.models import mlp, onnx
from tests.compiler.frontends.onnx.test_node_tests import array, cases, imported, is_ordinary
from tests.compiler.passes.distir.divided import results_of

runtime: Any = import_module("onnxruntime") if find_spec("onnxruntime") else None


def model_of(text: str, gradient: str = "", update: str = "") -> Any:
    model = onnx.ModelProto()
    source = Source(text, "test", gradient=gradient, update=update)
    model.ParseFromString(exported(Export(source)).model)
    onnx.checker.check_model(model, full_check=True)
    return model


def fitted(model: Any, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """As the model's inputs have them: MLIR's integers have no sign."""
    kinds = {
        each.name: onnx.helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type)
        for each in model.graph.input
    }
    return {
        name: value if value.dtype == kinds[name] else value.view(kinds[name])
        for name, value in arrays.items()
        if name in kinds
    }


def evaluations(model: Any, arrays: Mapping[str, np.ndarray]) -> list[list[np.ndarray]]:
    """The results by each of those who can."""
    given = fitted(model, arrays)
    found = [onnx.reference.ReferenceEvaluator(model).run(None, given)]
    if runtime is not None:
        runtime.set_default_logger_severity(4)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        session = runtime.InferenceSession(model.SerializeToString(), options)
        found.append(session.run(None, given))
    return found


def assert_exported_is_the_same(text: str, arrays: Mapping[str, np.ndarray], **of: str) -> Any:
    model = model_of(text, **of)
    want = results_of(text, arrays, **of)
    for found in evaluations(model, arrays):
        for got, (name, expected) in zip(found, want.items(), strict=True):
            assert got.shape == expected.shape, name
            if expected.dtype.kind == "f":
                atol = 64 * np.finfo(expected.dtype).eps * max(np.abs(expected).max(initial=1), 1)
                np.testing.assert_allclose(got, expected, rtol=0, atol=atol, err_msg=name)
            else:
                np.testing.assert_array_equal(got.view(expected.dtype), expected, err_msg=name)
    return model


STEP = """
#a = affine_map<(i, j) -> (i, j)>
#n = affine_map<(i, j) -> ()>
func.func @loss(%x: tensor<5x4xf32>, %w: tensor<4x3xf32>, %t: tensor<5x3xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x3xf32>) -> tensor<5x3xf32>
  %h = linalg.matmul ins(%x, %w : tensor<5x4xf32>, tensor<4x3xf32>)
                     outs(%f : tensor<5x3xf32>) -> tensor<5x3xf32>
  %y = math.tanh %h : tensor<5x3xf32>
  %n = tensor.empty() : tensor<f32>
  %s = linalg.fill ins(%zero : f32) outs(%n : tensor<f32>) -> tensor<f32>
  %l = linalg.generic {indexing_maps = [#a, #a, #n], iterator_types = ["reduction", "reduction"]}
      ins(%y, %t : tensor<5x3xf32>, tensor<5x3xf32>) outs(%s : tensor<f32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %d = arith.subf %p, %q : f32
    %m = arith.mulf %d, %d : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  return %l : tensor<f32>
}
"""


def drawn(*shapes: tuple[int, ...], seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]


def step_arrays() -> dict[str, np.ndarray]:
    return dict(zip("xwt", drawn((5, 4), (4, 3), (5, 3)), strict=True))


def test_gradients_and_updates_are_exported() -> None:
    assert_exported_is_the_same(STEP, step_arrays(), gradient="w")
    model = assert_exported_is_the_same(STEP, step_arrays(), gradient="w", update="sgd lr=0.1")
    assert [each.name for each in model.graph.input] == ["x", "w", "t"]


def test_a_product_is_no_space_of_all_loops() -> None:
    model = model_of(STEP)
    kinds = [each.op_type for each in model.graph.node]
    assert kinds.count("Einsum") == 2
    assert "Expand" not in kinds


def test_what_came_from_onnx_goes_back() -> None:
    function = convert(mlp(), dimensions={"batch": 7})
    (x,) = drawn((7, 6), seed=1)
    model = model_of(function.text)
    for found in evaluations(model, {"input": x, **function.weights}):
        want = onnx.reference.ReferenceEvaluator(mlp(7)).run(None, {"input": x})
        np.testing.assert_allclose(found[0], want[0], rtol=1e-6)


WINDOW = """
#x = affine_map<(i, k) -> (i * 2 + k)>
#d = affine_map<(i, k) -> (i, i)>
#o = affine_map<(i, k) -> (i)>
func.func @f(%x: tensor<9xf64>, %y: tensor<4x4xf64>, %w: tensor<3xf64>) -> tensor<4xf64> {
  %e = arith.constant dense<0.5> : tensor<4xf64>
  %r = linalg.generic {indexing_maps = [#x, #d, affine_map<(i, k) -> (k)>, #o],
                       iterator_types = ["parallel", "reduction"]}
      ins(%x, %y, %w : tensor<9xf64>, tensor<4x4xf64>, tensor<3xf64>) outs(%e : tensor<4xf64>) {
  ^bb0(%p: f64, %q: f64, %u: f64, %o: f64):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i32
    %n = arith.sitofp %j : i32 to f64
    %m = arith.mulf %p, %u : f64
    %s = arith.addf %m, %q : f64
    %z = arith.mulf %s, %n : f64
    %t = arith.addf %o, %z : f64
    linalg.yield %t : f64
  } -> tensor<4xf64>
  return %r : tensor<4xf64>
}
"""


def test_subscripts_that_are_no_loops() -> None:
    rng = np.random.default_rng(2)
    arrays = {n: rng.uniform(-1, 1, s) for n, s in (("x", 9), ("y", (4, 4)), ("w", 3))}
    assert_exported_is_the_same(WINDOW, arrays)


SLICES = """
func.func @f(%x: tensor<4x6xf32>, %p: tensor<2x2xf32>) -> (tensor<4x6xf32>, tensor<12xf32>) {
  %a = tensor.insert_slice %p into %x[1, 1] [2, 2] [2, 3] : tensor<2x2xf32> into tensor<4x6xf32>
  %b = tensor.extract_slice %a[0, 1] [4, 3] [1, 2] : tensor<4x6xf32> to tensor<4x3xf32>
  %c = tensor.collapse_shape %b [[0, 1]] : tensor<4x3xf32> into tensor<12xf32>
  return %a, %c : tensor<4x6xf32>, tensor<12xf32>
}
"""


def test_slices() -> None:
    assert_exported_is_the_same(SLICES, dict(zip("xp", drawn((4, 6), (2, 2)), strict=True)))


PLACED = """
"distir.mesh"() {sym_name = "m", devices = dense<[0, 1]> : tensor<2xi64>} : () -> ()
!t = tensor<4x3xf32, #distir.on<@m, "split 0">>
func.func @f(%x: !t) -> !t {
  %y = math.tanh %x : !t
  return %y : !t
}
"""


def test_the_sequential_function_is_exported_and_says_where_it_lay() -> None:
    model = model_of(PLACED)
    told = {each.key: each.value for each in model.metadata_props}
    assert told["avial.mesh.m"] == "2: 0, 1"
    assert told["avial.placement.x"] == told["avial.placement.result0"] == "@m, split 0"
    (x,) = drawn((4, 3))
    for found in evaluations(model, {"x": x}):
        np.testing.assert_allclose(found[0], np.tanh(x), rtol=1e-6)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("%y = math.cbrt %x : tensor<4xf32>", "math.cbrt has no operator in ONNX here"),
        (
            """%y = scf.for %i = %a to %b step %c iter_args(%v = %x) -> tensor<4xf32> {
                 %w = math.sin %v : tensor<4xf32>
                 scf.yield %w : tensor<4xf32> }""",
            "scf.for has no operator in ONNX here",
        ),
    ],
)
def test_refused_by_name_at_its_line(body: str, why: str) -> None:
    text = (
        "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %a = arith.constant 0 : index\n  %b = arith.constant 3 : index\n"
        f"  %c = arith.constant 1 : index\n  {body}\n  return %y : tensor<4xf32>\n}}\n"
    )
    with pytest.raises(PassError, match=why) as error:
        model_of(text)
    assert error.value.span is not None
    assert error.value.span.line == 5


def test_loops_on_memory_are_refused() -> None:
    text = "func.func @f(%x: memref<4xf32>) {\n  return\n}\n"
    with pytest.raises(AvialError, match="no function on tensors"):
        model_of(text)


def assert_case_goes_back(case: Any) -> None:
    """What ONNX says of the node is what it says of the exported text of the imported node."""
    for inputs, outputs in case.data_sets:
        names = [each.name for each in case.model.graph.input]
        given = {name: array(value) for name, value in zip(names, inputs, strict=False)}
        function = imported(case.model, given)
        arrays = {port.name: np.array(given[port.called], order="C") for port in function.inputs}
        model = model_of(function.text)
        found = onnx.reference.ReferenceEvaluator(model).run(
            None, fitted(model, arrays | dict(function.weights))
        )
        for got, want in zip(found, map(array, outputs), strict=True):
            if want.dtype.kind in "iub":
                np.testing.assert_array_equal(got.view(want.dtype), want)
                continue
            rtol = {"bfloat16": 2e-2, "float16": 4e-3}.get(want.dtype.name, float(case.rtol))
            np.testing.assert_allclose(
                got.astype(np.float64), want.astype(np.float64), rtol=rtol, atol=float(case.atol)
            )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # ONNX's evaluator takes the log of 0
@pytest.mark.slow
def test_nodes_there_and_back() -> None:
    """Of those within the list that are imported, all but a list of bf16 that differ."""
    refused: set[str] = set()
    right = 0
    for case in cases():
        if is_ordinary(case):
            try:
                assert_case_goes_back(case)
                right += 1
            except AvialError as error:
                refused.add(f"{case.name}: {error.message}" * ("dropout" not in case.name))
    assert len(refused - {""}) <= 1, refused
    assert right >= 655
