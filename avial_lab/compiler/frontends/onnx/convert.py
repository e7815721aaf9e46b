"""An ONNX graph -> a function on tensors, as MLIR's text, and the arrays of its weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

import numpy as np

from avial_lab.compiler.frontends.onnx.activations import ACTIVATIONS
from avial_lab.compiler.frontends.onnx.apart import NOWHERE, Outside
from avial_lab.compiler.frontends.onnx.backward import BACKWARD, DOMAIN, OPTIMIZERS, implied
from avial_lab.compiler.frontends.onnx.contractions import CONTRACTIONS
from avial_lab.compiler.frontends.onnx.elementwise import ELEMENTWISE
from avial_lab.compiler.frontends.onnx.files import array_of, attributes_of, onnx_package
from avial_lab.compiler.frontends.onnx.folding import folded
from avial_lab.compiler.frontends.onnx.losses import TARGET, Training
from avial_lab.compiler.frontends.onnx.nodes import NeedsValue, Node, Rule
from avial_lab.compiler.frontends.onnx.normalisation import NORMALISATION
from avial_lab.compiler.frontends.onnx.reductions import REDUCTIONS
from avial_lab.compiler.frontends.onnx.resize import RESIZE
from avial_lab.compiler.frontends.onnx.shapes import SHAPES
from avial_lab.compiler.frontends.onnx.values import (
    NotCovered,
    Operand,
    Proto,
    Shape,
    constant,
    dtype_of,
    element,
)
from avial_lab.compiler.frontends.onnx.windows import WINDOWS
from avial_lab.compiler.frontends.onnx.writer import Writer
from avial_lab.core.element_types import FLOATS
from avial_lab.core.errors import AvialError, BindError, OptionError, ParseError
from avial_lab.core.words import brief, count, listed, shortened
from avial_lab.planning.optimizers import STEP

NEWEST = 28
"""The last opset whose operators were looked at."""

STANDARD: Mapping[str, Rule] = {
    **ACTIVATIONS, **CONTRACTIONS, **ELEMENTWISE, **NORMALISATION, **REDUCTIONS, **RESIZE,
    **SHAPES, **WINDOWS,
}  # fmt: skip

BRANCHES = "If"
"""Of whose branches one is taken while the model is imported."""

_MOST_TOLD = 12

_UNFIT = (ArithmeticError, LookupError, MemoryError, TypeError, ValueError)
"""A rule relies on what ONNX says of its operator; a file may say something else."""


def _unfit(error: Exception) -> NotCovered:
    told = shortened(str(error), 120)
    return NotCovered(f"inputs or attributes that do not fit it: {told}")


@dataclass(frozen=True)
class Port:
    """An input or a result: what ONNX calls it and what the text does, its shape and element."""

    called: str
    name: str
    shape: Shape
    element: str

    def __repr__(self) -> str:
        return brief(self, f"{self.called}: {'x'.join([*map(str, self.shape), self.element])}")


@dataclass(frozen=True)
class OnnxFunction:
    """`text` in MLIR; `weights` are its arguments behind `inputs`, by their names in the text, and
    lie where the file has them. `results`: by ONNX's names, in the function's order.
    """

    text: str
    weights: Mapping[str, np.ndarray]
    inputs: tuple[Port, ...]
    parameters: tuple[Port, ...]
    results: tuple[Port, ...]
    states: tuple[Port, ...] = ()
    """What an optimizer keeps, which are arguments behind the weights."""

    def __repr__(self) -> str:
        return brief(
            self,
            f"{listed([p.called for p in self.inputs])} -> "
            f"{listed([p.called for p in self.results])}, {count(len(self.weights), 'weight')}",
        )


def convert(
    model: Proto,
    *,
    outside: Outside = NOWHERE,
    dimensions: Mapping[str, int] | None = None,
    values: Mapping[str, np.ndarray] | None = None,
    shapes: Mapping[str, Shape] | None = None,
    training: Training | None = None,
    function: str = "main",
) -> OnnxFunction:
    """The model's graph; for a `training` only up to its loss, which is the only result then.

    `dimensions`: numbers for those that have names; `shapes`: of inputs,
    whose dimensions need none then; `values`: of inputs that become constants.

    Raises ParseError with every node that is not covered.
    """
    onnx_package()
    _check_types(dimensions or {}, values or {}, shapes or {})
    return _Conversion(
        _inlined(model),
        outside,
        dict(dimensions or {}),
        dict(values or {}),
        dict(shapes or {}),
        training,
    ).run(function)


def _inlined(model: Proto) -> Proto:
    """Without functions: the model's own, and operators without a rule that ONNX defines by
    others, where that can be (some need types that only inference finds).
    """
    import onnx.inliner

    if len(model.functions):
        try:
            model = onnx.inliner.inline_local_functions(model)
        except Exception as error:  # whatever a hostile file makes it raise
            raise ParseError(
                f"the model's functions cannot be inlined: {shortened(str(error), 200)}"
            ) from None
    unknown = {
        node.op_type
        for node in model.graph.node
        if node.domain in ("", "ai.onnx") and node.op_type not in STANDARD
    }
    for name in sorted(unknown):
        with suppress(Exception):  # it stays, and is refused by its name
            model = onnx.inliner.inline_selected_functions(
                _spelled_out(model, name), [("", name)], inline_schema_functions=True
            )
    return model


def _spelled_out(model: Proto, kind: str) -> Proto:
    """All attributes of the nodes of that kind, and the types of all tensors: the inliner forgets
    usual attributes that are not there, and some functions depend on types.
    """
    import onnx
    import onnx.shape_inference

    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    (version,) = (o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    usual = onnx.defs.get_schema(kind, version, "").attributes
    for node in whole.graph.node:
        if node.op_type == kind and node.domain in ("", "ai.onnx"):
            there = {attribute.name for attribute in node.attribute}
            node.attribute.extend(
                each.default_value
                for name, each in usual.items()
                if name not in there and each.default_value.name
            )
    known = {each.name for each in (*whole.graph.input, *whole.graph.value_info)}
    whole.graph.value_info.extend(
        onnx.helper.make_tensor_value_info(each.name, each.data_type, list(each.dims))
        for each in whole.graph.initializer
        if each.name not in known
    )
    return onnx.shape_inference.infer_shapes(whole)


def _check_types(dimensions: object, values: object, shapes: object) -> None:
    """OptionError for what cannot be a number, an array or a shape."""

    def of(what: str, given: object, right: Callable[[object], bool], example: str) -> None:
        if not isinstance(given, Mapping) or not all(map(right, given.values())):
            raise OptionError(
                f"{what} map names to what is given for them; got {shortened(repr(given), 60)}",
                hint=f"for example {what}={{{example}}}",
            )

    def is_shape(given: object) -> bool:
        return isinstance(given, tuple | list) and all(map(_is_whole, given))

    of("dimensions", dimensions, _is_whole, "'batch': 32")
    of("values", values, lambda given: isinstance(given, np.ndarray), "'axes': np.array([0])")
    of("shapes", shapes, is_shape, "'x': (8, 4)")


def _is_whole(given: object) -> bool:
    return isinstance(given, int | np.integer)


@dataclass
class _Conversion:
    model: Proto
    outside: Outside
    dimensions: dict[str, int]
    values: dict[str, np.ndarray]
    shapes: dict[str, Shape]
    training: Training | None
    writer: Writer = field(default_factory=Writer)
    known: dict[str, Operand | None] = field(default_factory=dict)
    """By ONNX's names; None for what a node would have made that is not covered."""
    readers: Counter[str] = field(default_factory=Counter)
    """How often a name is read."""
    problems: list[tuple[Proto, AvialError]] = field(default_factory=list)
    implied: dict[str, Operand | str] = field(default_factory=dict)
    """Names that nobody makes, and what they stand for."""

    def run(self, function: str) -> OnnxFunction:
        graph = self.model.graph
        versions = self._versions()
        wanted = self._wanted()
        nodes = _needed(_in_order(graph), wanted)
        self._refuse_unknown(nodes)
        if self.problems:
            raise self._refusal()
        weights = {tensor.name: tensor for tensor in graph.initializer}
        if len(graph.sparse_initializer):
            raise ParseError("sparse initialisers are not covered")
        inputs = [self._input(each) for each in graph.input if each.name not in weights]
        self._check_given({p.called for p in inputs if p is not None})
        self.readers.update(name for node in nodes for name in _reads(node))
        self.readers.update(wanted)
        for tensor in graph.initializer:
            if self.readers[tensor.name]:
                self.known[tensor.name] = self._weight(tensor)
        self.implied = _implied(graph)
        for proto in nodes:
            self._node(proto, versions)
        if self.problems:
            raise self._refusal()
        ports = [p for p in inputs if p is not None]
        results = [self._result(name) for name in wanted]
        if self.training is not None:
            results = [self._loss(self.training, *results[0], ports)]
        return self._function(function, ports, results)

    def _wanted(self) -> list[str]:
        """The results; of a training what its loss is of."""
        names = [each.name for each in self.model.graph.output]
        if self.training is None or not names:
            return [*names, *_updated(self.model.graph, names)]
        made = {name for node in self.model.graph.node for name in node.output}
        of = self.training.of or names[0]
        if of not in made:
            raise BindError(
                f"the model makes no '{shortened(of, 60)}'",
                hint=f"its results are: {listed(names)}; names of values between are known, too",
            )
        return [of]

    def _loss(
        self, training: Training, called: str, value: Operand, ports: list[Port]
    ) -> tuple[str, Operand]:
        shape, dtype = training.target_of(value)
        name = self.writer.argument(TARGET)
        ports.append(Port(TARGET, name[1:], shape, element(dtype)))
        target = Operand(shape, dtype, name, called=TARGET)
        self.writer.lines.append(f"// {training.loss}")
        return "loss", self.writer.tensor(training.written(self.writer, value, target))

    def _states(self, parameters: Sequence[Port]) -> tuple[Port, ...]:
        """What an optimizer keeps, as arguments."""
        if self.training is None:
            return ()
        found = [
            Port(f"{p.called} {ending}", f"{p.name}_{ending}", p.shape, p.element)
            for p in parameters
            if p.element in FLOATS
            for ending in self.training.kept
        ]
        if self.training.counts:
            found.append(Port(STEP, STEP, (), "f32"))
        clash = next((p.name for p in found if p.name in self.writer.taken), None)
        if clash is not None:
            raise NotCovered(f"the model has an argument '{clash}', as an optimizer wants to")
        return tuple(found)

    # The graph's ends -----------------------------------------------------------------------------

    def _versions(self) -> dict[str, int]:
        found = {each.domain or "": int(each.version) for each in self.model.opset_import}
        found = {("" if domain == "ai.onnx" else domain): v for domain, v in found.items()}
        version = found.setdefault("", NEWEST)
        if not 1 <= version <= NEWEST:
            raise ParseError(
                f"the model is of opset {version}; operators are covered up to {NEWEST}",
                hint="onnx.version_converter makes older ones",
            )
        return found

    def _input(self, info: Proto) -> Port | None:
        """A graph's input as an argument; None for one that is given as a constant."""
        called = info.name
        kind = info.type.tensor_type
        if not info.type.HasField("tensor_type"):
            raise ParseError(f"input '{shortened(called, 60)}' is no tensor")
        dtype = dtype_of(kind.elem_type)
        if called in self.values:
            value = np.asarray(self.values[called])
            if value.dtype != dtype:
                raise BindError(
                    f"input '{called}' has elements of {dtype}, and is given {value.dtype}"
                )
            self._shape(info, value.shape)
            self.known[called] = Operand(value.shape, dtype, known=value, called=called)
            return None
        shape = self._shape(info, self.shapes.get(called))
        element(dtype)
        name = self.writer.argument(called)
        self.known[called] = Operand(shape, dtype, name, called=called)
        return Port(called, name[1:], shape, element(dtype))

    def _shape(self, info: Proto, given: Shape | None) -> Shape:
        """Its dimensions, those with names as they are bound; `given` binds them."""
        called, kind = shortened(info.name, 60), info.type.tensor_type
        if not kind.HasField("shape"):
            if given is None:
                raise BindError(
                    f"input '{called}' may have any shape",
                    hint=f"give its array: --in {called}=20x30xf32, or shapes={{'{called}': …}}",
                )
            return given
        if given is not None and len(given) != len(kind.shape.dim):
            raise BindError(
                f"input '{called}' has {count(len(kind.shape.dim), 'dimension')}, and is given "
                f"{len(given)}"
            )
        found: list[int] = []
        for k, dim in enumerate(kind.shape.dim):
            said = int(dim.dim_value) if dim.HasField("dim_value") else None
            if said == -1 or (said == 0 and given is not None):
                said = None  # Paddle says so of what is open, training graphs of a batch
            name = _name_of(dim)
            bound = said if said is not None else self.dimensions.get(name) if name else None
            if given is not None:
                if bound is not None and bound != given[k]:
                    what = f"'{name}' = {bound}" if said is None else str(bound)
                    raise BindError(
                        f"dimension {k} of input '{called}' is {what}, and it is given {given[k]}"
                    )
                bound = given[k]
                if name:
                    self.dimensions.setdefault(name, bound)
            if bound is None:
                raise BindError(
                    f"dimension {k} of input '{called}' is open"
                    + (f": '{shortened(name, 60)}'" if name else ""),
                    hint=f"bind it: -D {name}=32" if name
                    else f"give the array: --in {called}=FILE.npy, or its shape",
                )  # fmt: skip
            if not 0 <= bound < 1 << 40:
                raise BindError(f"dimension {k} of input '{called}' is {bound}")
            found.append(bound)
        return tuple(found)

    def _check_given(self, inputs: set[str]) -> None:
        known = inputs | set(self.known)
        named = {_name_of(d) for each in self.model.graph.input for d in _dims(each)}
        for name in self.dimensions:
            if name not in named:
                raise BindError(
                    f"the model has no dimension '{shortened(name, 60)}'",
                    hint=f"its dimensions are: {listed(sorted(filter(None, named))) or 'none'}",
                )
        for name in (*self.values, *self.shapes):
            if name not in known:
                raise BindError(
                    f"the model has no input '{shortened(name, 60)}'",
                    hint=f"its inputs are: {listed(sorted(known)) or 'none'}",
                )

    def _weight(self, tensor: Proto) -> Operand:
        """Integers, and single numbers, are constants; other initialisers are arguments."""
        value = array_of(tensor, self.outside)
        operand = Operand(value.shape, value.dtype, known=value, called=tensor.name)
        if value.ndim == 0 or (value.dtype.kind in "iub" and value.size <= 1024):
            return operand
        return self.writer.weight(operand)

    def _result(self, called: str) -> tuple[str, Operand]:
        operand = self.known.get(called)
        if operand is None:
            raise ParseError(f"result '{shortened(called, 60)}' is made by no node")
        try:
            return called, self.writer.tensor(operand)
        except _UNFIT as error:
            raise ParseError(
                f"result '{shortened(called, 60)}' is made of {_unfit(error).message}"
            ) from None

    # Nodes ----------------------------------------------------------------------------------------

    def _node(self, proto: Proto, versions: Mapping[str, int]) -> None:
        for name in proto.input:
            if name in self.implied and name not in self.known:
                self.known[name] = self._implied(self.implied[name])
        missing = [name for name in _reads(proto) if self.known.get(name) is None]
        outputs = [name for name in proto.output if name]
        if missing:
            self.known.update(dict.fromkeys(outputs))
            return
        domain = _domain(proto)
        try:
            if (domain, proto.op_type) == ("", BRANCHES):
                results = self._taken_branch(proto, versions)
                self.known.update(zip(proto.output, results, strict=True))
                return
            node = Node(
                proto.op_type,
                proto.name,
                domain,
                versions.get(domain, 1),
                tuple(self.known[name] if name else None for name in proto.input),
                tuple(proto.output),
                attributes_of(proto, self.outside),
            )
            results = folded(node, proto) or self._by_rule(node)
            made = {
                name: self._kept(operand) if self.readers[name] > 1 else operand
                for name, operand in zip(proto.output, results, strict=False)
                if name and operand is not None
            }
        except AvialError as error:
            self.problems.append((proto, error))
            self.known.update(dict.fromkeys(outputs))
            return
        except _UNFIT as error:
            self.problems.append((proto, _unfit(error)))
            self.known.update(dict.fromkeys(outputs))
            return
        self.known.update({**dict.fromkeys(outputs), **made})

    def _taken_branch(self, proto: Proto, versions: Mapping[str, int]) -> list[Operand | None]:
        """The results of the branch whose condition is known to hold; the other is not looked at.

        Its names are its own: what stands around is as it was afterwards.
        """
        condition = self.known[proto.input[0]]
        if condition is None or condition.known is None:
            raise NeedsValue(
                f"its condition '{shortened(proto.input[0], 60)}' is known only when it runs",
                hint="where it is of an input, give that: values={…}, --in NAME=FILE.npy; else "
                "export the model for inputs of fixed sizes, which unrolls control flow",
            )
        taken = "then_branch" if condition.known.all() else "else_branch"
        graph = next((each.g for each in proto.attribute if each.name == taken), None)
        if graph is None:
            raise NotCovered(f"it has no {taken}")
        wanted = [each.name for each in graph.output]
        nodes = _needed(_in_order(graph, self.known), wanted)
        told = len(self.problems)
        self._refuse_unknown(nodes)
        if len(self.problems) > told:
            return [None] * len(wanted)
        self.readers.update(name for node in nodes for name in _reads(node))
        self.readers.update(wanted)
        around = dict(self.known)
        try:
            for tensor in graph.initializer:
                self.known[tensor.name] = self._weight(tensor)
            for each in nodes:
                self._node(each, versions)
            return [self.known.get(name) for name in wanted]
        finally:
            self.known = around

    def _implied(self, meaning: Operand | str) -> Operand | None:
        """A constant, or the shape of what is called so."""
        if isinstance(meaning, Operand):
            return meaning
        of = self.known.get(meaning)
        return None if of is None else constant(np.array(of.shape, np.int64))

    def _kept(self, operand: Operand) -> Operand:
        """What several nodes read is computed once."""
        return operand if operand.deferred is None else self.writer.tensor(operand)

    def _by_rule(self, node: Node) -> Sequence[Operand | None]:
        self.writer.lines.append(f"// {_comment(node)}")
        made = rules_of(node.domain)[node.kind](node, self.writer)
        results = [made] if isinstance(made, Operand) else list(made)
        for k, name in enumerate(node.outputs):
            if name and (k >= len(results) or results[k] is None):
                raise NotCovered(f"its result {k} is not covered")
        if self.writer.lines[-1].startswith("//"):
            self.writer.lines.pop()
        return results

    def _refuse_unknown(self, nodes: Sequence[Proto]) -> None:
        for proto in nodes:
            domain = _domain(proto)
            if (domain, proto.op_type) != ("", BRANCHES) and proto.op_type not in rules_of(domain):
                told = f"{domain}.{proto.op_type}" if domain else proto.op_type
                error = NotCovered(
                    f"operator {shortened(told, 60)} is not covered",
                    hint=_way_out(domain, proto.op_type),
                )
                self.problems.append((proto, error))

    def _refusal(self) -> AvialError:
        """All that is wrong at once; what is wrong alike once, with how often."""
        by_message: dict[str, list[Proto]] = {}
        hints: dict[str, str] = {}
        for proto, error in self.problems:
            by_message.setdefault(error.message, []).append(proto)
            if error.hint:
                hints[error.message] = error.hint
        lines = [
            f"{_called(protos[0])}: {message}"
            + (f" ({len(protos)} nodes)" if len(protos) > 1 else "")
            for message, protos in by_message.items()
        ]
        hint = next(iter(hints.values()), None)
        only_values = all(isinstance(error, NeedsValue) for _, error in self.problems)
        kind = NeedsValue if only_values else NotCovered
        if len(lines) == 1:
            return kind(lines[0], hint=hint)
        more = len(lines) - _MOST_TOLD
        told = [*lines[:_MOST_TOLD], *([f"… and {more} more"] if more > 0 else [])]
        head = f"{count(len(self.problems), 'node')} cannot be imported:"
        return kind("\n  ".join([head, *told]), hint=hint)

    # The text -------------------------------------------------------------------------------------

    def _function(
        self, name: str, inputs: Sequence[Port], results: Sequence[tuple[str, Operand]]
    ) -> OnnxFunction:
        weights = list(self.writer.weights.values())
        parameters = tuple(Port(w.called, w.name[1:], w.shape, w.element) for w in weights)
        states = self._states(parameters)
        heads = [f"%{p.name}: {_type(p)}" for p in (*inputs, *parameters, *states)]
        types = ", ".join(operand.type for _, operand in results)
        names = ", ".join(operand.name for _, operand in results)
        body = "\n  ".join(self.writer.lines)
        text = (
            f"func.func @{name}({', '.join(heads)}) -> ({types}) {{\n  {body}\n"
            f"  return {names} : {types}\n}}\n"
        )
        return OnnxFunction(
            text,
            {w.name[1:]: w.known for w in weights if w.known is not None},
            tuple(inputs),
            parameters,
            tuple(
                Port(called, f"result{k}", operand.shape, operand.element)
                for k, (called, operand) in enumerate(results)
            ),
            states,
        )


def rules_of(domain: str) -> Mapping[str, Rule]:
    """The operators of a domain that are covered."""
    return {"": STANDARD, DOMAIN: BACKWARD}.get(domain, {})


def _domain(proto: Proto) -> str:
    return "" if proto.domain == "ai.onnx" else proto.domain


def _reads(proto: Proto) -> list[str]:
    """The names that a node reads, those inside of its graphs that are made around it too."""
    found = dict.fromkeys(name for name in proto.input if name)
    for attribute in proto.attribute:
        for graph in (attribute.g, *attribute.graphs) if attribute.type in (5, 10) else ():
            own = {each.name for each in (*graph.input, *graph.initializer)}
            own.update(name for node in graph.node for name in node.output)
            inside = [name for node in graph.node for name in _reads(node)]
            ends = [each.name for each in graph.output]
            found.update((name, None) for name in (*inside, *ends) if name not in own)
    return list(found)


def _dims(info: Proto) -> Sequence[Proto]:
    return info.type.tensor_type.shape.dim


def _name_of(dim: Proto) -> str:
    """What binds it; "" where it has no name of its own (Paddle calls all that are open alike)."""
    return "" if dim.dim_param == "?" else dim.dim_param


def _type(port: Port) -> str:
    return f"tensor<{'x'.join([*map(str, port.shape), port.element])}>"


def _called(proto: Proto) -> str:
    """A node as its user may know it."""
    name = proto.name or next((f"of '{o}'" for o in proto.output if o), "without a name")
    told = f"'{name}'" if proto.name else name
    return f"node {shortened(told, 60)} ({shortened(proto.op_type, 40)})"


def _comment(node: Node) -> str:
    """What the node is called, where a line of the text may hold it."""
    called = "".join(c if c.isascii() and (c.isalnum() or c in "/-:") else "_" for c in node.name)
    return shortened(f"{node.kind} {called}".strip(), 80)


def _way_out(domain: str, kind: str) -> str:
    """What helps where there is no rule for an operator."""
    if kind in ("If", "Loop", "Scan"):
        return "export the model for inputs of fixed sizes: exporters fold and unroll control flow"
    if "Quant" in kind or "QLinear" in kind or kind.endswith("Integer"):
        return "import the model as it was before it was quantised"
    if domain == DOMAIN:
        return "export it without the fusions of ONNX Runtime, whose own operators these are"
    return "onnx.utils.extract_model cuts out the part of the model before or behind it"


def _needed(nodes: Sequence[Proto], wanted: Sequence[str]) -> list[Proto]:
    """Those of nodes in order of which something wanted is made."""
    read = set(wanted)
    kept: list[Proto] = []
    for node in reversed(nodes):
        if any(name in read for name in node.output if name):
            kept.append(node)
            read.update(_reads(node))
    return kept[::-1]


def _updated(graph: Proto, names: Sequence[str]) -> list[str]:
    """What optimizers write over their weights, which no list of results has."""
    read = {name for node in graph.node for name in node.input} | set(names)
    return [
        node.output[0]
        for node in graph.node
        if node.domain == DOMAIN and node.op_type in OPTIMIZERS and node.output
        if node.output[0] and node.output[0] not in read
    ]


def _implied(graph: Proto) -> dict[str, Operand | str]:
    """Of a training graph: the names that nobody makes and that stand for something."""
    if not any(node.domain == DOMAIN for node in graph.node):
        return {}
    made = {name for node in graph.node for name in node.output}
    made.update(each.name for each in (*graph.input, *graph.initializer))
    found: dict[str, Operand | str] = {}
    for node in graph.node:
        for name in node.input:
            meaning = implied(name) if name and name not in made else None
            if meaning is None or (isinstance(meaning, str) and meaning not in made):
                continue
            if name.endswith("_grad") and name.removesuffix("_grad") not in made:
                continue
            found[name] = meaning
    return found


def _in_order(graph: Proto, around: Iterable[str] = ()) -> list[Proto]:
    """The nodes so that each comes behind those that it reads; ParseError for a cycle, a name that
    nobody makes, not `around` either, and one that two make.
    """
    makers: dict[str, int] = {}
    nodes = list(graph.node)
    given = {each.name for each in (*graph.input, *graph.initializer)}.union(around)
    for k, node in enumerate(nodes):
        for name in node.output:
            if name and (name in makers or name in given):
                raise ParseError(f"{_called(node)} makes '{shortened(name, 60)}' a second time")
            if name:
                makers[name] = k
    meant = _implied(graph)
    for node in nodes:
        for name in _reads(node):
            if name not in makers and name not in given and name not in meant:
                raise ParseError(
                    f"{_called(node)} reads '{shortened(name, 60)}', which nobody makes"
                )
    return [nodes[k] for k in _sorted(nodes, makers)]


def _sorted(nodes: Sequence[Proto], makers: Mapping[str, int]) -> Iterator[int]:
    """Kahn's order, that of the file where it can be."""
    readers: dict[int, list[int]] = {}
    waits = [0] * len(nodes)
    for k, node in enumerate(nodes):
        for maker in {makers[name] for name in _reads(node) if name in makers}:
            readers.setdefault(maker, []).append(k)
            waits[k] += 1
    ready = [k for k, n in enumerate(waits) if n == 0]
    heapify(ready)
    left = len(nodes)
    while ready:
        k = heappop(ready)
        left -= 1
        yield k
        for reader in readers.get(k, ()):
            waits[reader] -= 1
            if waits[reader] == 0:
                heappush(ready, reader)
    if left:
        stuck = next(node for node, n in zip(nodes, waits, strict=True) if n)
        raise ParseError(f"{_called(stuck)} waits for itself: the graph has a cycle")
