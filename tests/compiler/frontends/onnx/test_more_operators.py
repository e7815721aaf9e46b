"""Operators beyond those that are promised, in exporters' spellings: ONNX's own reference is the
witness; what has no rule is refused by its name, with a way out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from avial_lab.compiler.frontends.onnx.convert import convert
from avial_lab.core.errors import BindError, ParseError
from tests.compiler.frontends.onnx.models import computed, model, node, onnx

F = np.float32


def test_activations_and_images() -> None:
    """One function of all of them."""
    rng = np.random.default_rng(3)
    plain = "HardSigmoid HardSwish Selu Celu Softsign Mish ThresholdedRelu Shrink Atan Cosh"
    nodes = [node(kind, "x", f"y{k}") for k, kind in enumerate(plain.split())]
    nodes += [
        node("PRelu", "x slope", "prelu"),
        node("InstanceNormalization", "x four four", "instance"),
        node("GroupNormalization", "x two two", "group", num_groups=2),
        node("DepthToSpace", "x", "deep", blocksize=2, mode="CRD"),
        node("SpaceToDepth", "deep", "flat", blocksize=2),
        node("MeanVarianceNormalization", "x", "plain"),
        node("ReduceLogSumExp", "x axes", "sums", keepdims=0),
        node("Resize", "x - - sizes", "linear", mode="linear"),
        node("Resize", "x - scales", "near", coordinate_transformation_mode="align_corners"),
        node("ConvTranspose", "x kernel two", "turned", strides=[2, 1],
             pads=[1, 0, 1, 1], output_padding=[1, 0]),
        node("Einsum", "x w", "einsum", equation="nchw,cd->ndwh"),
    ]  # fmt: skip
    weights = {
        "slope": rng.uniform(0, 1, (4, 1, 1)).astype(F),
        "four": rng.uniform(0.5, 1, 4).astype(F),
        "two": rng.uniform(0.5, 1, 2).astype(F),
        "axes": np.array([1, 3], np.int64),
        "sizes": np.array([2, 4, 5, 9], np.int64),
        "scales": np.array([1, 1, 2, 1.5], F),
        "kernel": rng.uniform(-1, 1, (4, 2, 3, 2)).astype(F),
        "w": rng.uniform(-1, 1, (4, 3)).astype(F),
    }
    results = [name for each in nodes for name in each.output]
    given = {"x": rng.uniform(-2, 2, (2, 4, 3, 6)).astype(F)}
    proto = model(nodes, {"x": (F, (2, 4, 3, 6))}, results, weights, opset=18)
    found = computed(convert(proto), given)
    wanted = onnx.reference.ReferenceEvaluator(proto).run(None, given)
    for name, want in zip(results, wanted, strict=True):
        np.testing.assert_allclose(found[name], want, rtol=2e-6, atol=2e-6, err_msg=name)


@pytest.mark.slow
def test_operators_that_onnx_defines_by_others() -> None:
    """The attention of opset 23, and a normalisation."""
    proto = onnx.parser.parse_model(
        """<ir_version: 11, opset_import: ["": 23]> g (float[2, 2, 5, 4] q, float[2, 2, 5, 4] k)
        => (float[2, 2, 5, 4] y) <float[4] s = {1, 2, 3, 4}>
        { a = Attention(q, k, q)  y = RMSNormalization(a, s) }"""
    )
    rng = np.random.default_rng(4)
    given = {name: rng.uniform(-1, 1, (2, 2, 5, 4)).astype(F) for name in "qk"}
    (want,) = onnx.reference.ReferenceEvaluator(proto).run(None, given)
    found = computed(convert(proto), given)["y"]
    np.testing.assert_allclose(found, want, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(
    ("kind", "inputs", "attributes", "message"),
    [
        ("TopK", "x w", {}, "extract_model"),
        ("QuantizeLinear", "x w", {}, "before it was quantised"),
        ("Loop", "- - x", {"body": onnx.helper.make_graph([], "b", [], [])}, "folded?|unroll"),
        ("Resize", "x", {"mode": "cubic"}, "mode 'cubic' is not covered"),
        ("Resize", "x - big", {}, r"scales \[.*\] for 2 dimensions"),
        ("Resize", "x - - negative", {}, r"sizes \[-1, 4\] for 2 dimensions"),
        ("Einsum", "x w", {"equation": "ii,jk->i"}, "equation 'ii,jk->i' is not covered"),
        ("Einsum", "x w", {"equation": "ij,ij->z"}, "equation 'ij,ij->z' is not covered"),
        ("DepthToSpace", "x", {"blocksize": 2}, "blocks of 2 in a tensor"),
        ("GroupNormalization", "x w w", {"num_groups": 3}, "3 groups of a tensor"),
    ],
)
def test_refused_by_name(kind: str, inputs: str, attributes: dict[str, Any], message: str) -> None:
    weights = {
        "w": np.ones((4, 4), F),
        "big": np.array([1, np.inf], F),
        "negative": np.array([-1, 4], np.int64),
    }
    each = node(kind, inputs, "y", name="/head/it", **attributes)
    with pytest.raises(ParseError, match=message) as error:
        convert(model([each], {"x": (F, (4, 4))}, ["y"], weights, opset=18))
    assert f"node '/head/it' ({kind})" in str(error.value)


def branching(condition: str) -> Any:
    """A model whose `If` has names of its own inside and reads names from around it."""
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[N, 4] x, bool flag) => (float[N, 4] y, float[N, 4] z)
        <float[4] w = {{1, 2, 3, 4}}, int64 four = {{4}}, int64 one = {{1}}>
        {{
          s = Shape(x)
          n = Gather(s, one)
          small = Less(n, four)
          a = Mul(x, w)
          y = If({condition}) <
            then_branch = no () => (float[N, 4] t) {{ u = Neg(a)  t = Hardmax(u) }},
            else_branch = yes () => (float[N, 4] t)
              <float[4] v = {{4, 3, 2, 1}}> {{ u = Add(a, v)  t = Exp(u) }}>
          z = If({condition}) <
            then_branch = no1 () => (float[N, 4] t) {{ t = Loop() }},
            else_branch = yes1 () => (float[N, 4] t) {{ u = Relu(x)  t = Sub(u, w) }}>
        }}"""
    )


def test_the_branch_is_taken_whose_condition_is_known() -> None:
    proto, x = branching("small"), np.linspace(-1, 1, 12, dtype=F).reshape(3, 4)
    function = convert(proto, dimensions={"N": 3})
    given = {"x": x, "flag": np.array(True)}
    found = computed(function, given)
    w = np.array([1, 2, 3, 4], F)
    np.testing.assert_allclose(found["y"], np.exp(x * w + w[::-1]), rtol=1e-6)
    np.testing.assert_array_equal(found["z"], np.maximum(x, 0) - w)


def test_a_condition_of_an_input_is_given_with_it() -> None:
    proto = branching("flag")
    with pytest.raises(
        ParseError, match=r"its condition 'flag' is known only when it runs"
    ) as told:
        convert(proto, dimensions={"N": 3})
    assert "values=" in (told.value.hint or "")
    function = convert(proto, dimensions={"N": 3}, values={"flag": np.array(False)})
    assert [port.called for port in function.inputs] == ["x"]
    with pytest.raises(ParseError, match=r"operator Loop is not covered"):
        convert(proto, dimensions={"N": 3}, values={"flag": np.array(True)})


def test_open_dimensions_as_paddle_writes_them() -> None:
    """A number that is none, and one name for all that have no other."""
    proto = model([node("Relu", "x", "y")], {"x": (F, (-1, 3, "?", "?"))}, ["y"])
    with pytest.raises(BindError, match="dimension 0 of input 'x' is open") as told:
        convert(proto)
    assert "--in x=" in (told.value.hint or "")
    (port,) = convert(proto, shapes={"x": (2, 3, 4, 5)}).inputs
    assert port.shape == (2, 3, 4, 5)
