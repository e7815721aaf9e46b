"""Operations that stand for several steps become the loops of their definition.

Module with linalg.softmax (on tensors or memrefs), pack, unpack and Winograd's transforms (on
tensors) -> the same values by affine loops over memory, which are divided as any others are.

MLIR 22 has no lowering of them behind bufferisation, and before it its own Winograd transforms
round their factors to f32, whatever the element is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mlir import ir, passmanager
from mlir.dialects import bufferization, memref, tensor

from avial_lab.compiler.ir.nesting import parent_of
from avial_lab.compiler.ir.operations import operations_in, operations_named
from avial_lab.compiler.ir.views import DYNAMIC


def aggregates_to_loops(module: ir.Operation) -> None:
    """A tensor's loops write fresh memory, which becomes the result.

    before:  %r = linalg.softmax dimension(1) ins(%x) outs(%e) : tensor<3x7xf64>
    after:   %m = bufferization.to_buffer %x read_only   %o = memref.alloc()
             affine.for … { the greatest; the exponentials and their sum; the quotients }
             %r = bufferization.to_tensor %o restrict writable
    """
    for op in operations_named(module, *_LOOPS):
        with op.context, op.location, ir.InsertionPoint(op):
            _expanded(op)


def _expanded(op: ir.Operation) -> None:
    operands = list(op.operands)
    if not len(op.results):
        _put(op, _LOOPS[op.name](op), operands)
        op.erase()
        return
    result = _fresh(operands[1])
    if op.name == "linalg.winograd_output_transform":  # adds to what is there
        memref.copy(_buffer_of(operands[1]), result)
    given = [_buffer_of(each) if _is_tensor(each) else each for each in operands]
    given[1] = result
    _put(op, _LOOPS[op.name](op), given)
    made = bufferization.to_tensor(op.results[0].type, result, restrict=True, writable=True)
    op.results[0].replace_all_uses_with(made)
    op.erase()


def _is_tensor(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def _is_in_a_region(op: ir.Operation) -> bool:
    """Of another operation than its function."""
    around = parent_of(op)
    return around is not None and around.name != "func.func"


def _is_open(value: ir.Value) -> bool:
    return isinstance(value.type, ir.MemRefType) and not value.type.has_static_shape


def _memory_type(value: ir.Value) -> ir.MemRefType:
    if isinstance(value.type, ir.MemRefType):
        return value.type
    kind = ir.RankedTensorType(value.type)
    return ir.MemRefType.get(list(kind.shape), kind.element_type)


def _buffer_of(value: ir.Value) -> ir.Value:
    return bufferization.to_buffer(_memory_type(value), value, read_only=True)


def _fresh(like: ir.Value) -> ir.Value:
    kind, index = _memory_type(like), ir.IndexType.get()
    open_ = [dim for dim, size in enumerate(kind.shape) if size == DYNAMIC]
    number = ir.IntegerAttr.get
    places = [
        ir.Operation.create("arith.constant", [index], attributes={"value": number(index, dim)})
        for dim in open_
    ]
    return memref.alloc(kind, [tensor.dim(like, place.result) for place in places], [])


def _put(op: ir.Operation, body: str, values: Sequence[ir.Value]) -> None:
    """The operations of `body`, in which `values` are %a0, %a1, …, in front of `op`."""
    names = ", ".join(f"%a{k}: {value.type}" for k, value in enumerate(values))
    made = ir.Module.parse(f"func.func @f({names}) {{\n{body}\nreturn\n}}")
    if _is_in_a_region(op) and any(map(_is_open, values)):
        # Sizes that are known in a loop alone are no symbols of affine loops.
        passmanager.PassManager.parse("builtin.module(lower-affine)").run(made.operation)
    block = made.body.operations[0].operation.regions[0].blocks[0]
    for argument, value in zip(block.arguments, values, strict=True):
        argument.replace_all_uses_with(value)
    *inside, _ = list(block.operations)
    for view in inside:
        view.operation.move_before(op)
        for each in (view.operation, *operations_in(view.operation)):
            each.location = op.location


# -- text ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Array:
    """An operand, as its place in the text has it."""

    name: str
    type: str
    shape: Sequence[int]
    element: str

    @property
    def rank(self) -> int:
        return len(self.shape)

    @staticmethod
    def of(op: ir.Operation, place: int) -> _Array:
        kind = _memory_type(op.operands[place])
        return _Array(f"%a{place}", str(kind), list(kind.shape), str(kind.element_type))

    def sizes(self) -> str:
        """Where they are open: of %a1 they are %a1_0, %a1_1, …"""
        return "\n".join(
            f"%c{self.name[1:]}_{dim} = arith.constant {dim} : index\n{self.name}_{dim} = "
            f"memref.dim {self.name}, %c{self.name[1:]}_{dim} : {self.type}"
            for dim, size in enumerate(self.shape)
            if size == DYNAMIC
        )

    def size(self, dim: int) -> str:
        return f"{self.name}_{dim}" if self.shape[dim] == DYNAMIC else str(self.shape[dim])

    def load(self, into: str, subscripts: Sequence[str]) -> str:
        return f"{into} = affine.load {self.name}[{', '.join(subscripts)}] : {self.type}"

    def store(self, value: str, subscripts: Sequence[str]) -> str:
        return f"affine.store {value}, {self.name}[{', '.join(subscripts)}] : {self.type}"

    def nest(self, names: Sequence[str], body: str, *, but: Sequence[int] = ()) -> str:
        """Loops over its elements, `but` along some of its dimensions."""
        over = [dim for dim in range(self.rank) if dim not in but]
        heads = [f"affine.for {names[dim]} = 0 to {self.size(dim)} {{" for dim in over]
        return "\n".join([*heads, body, "}" * len(heads)])


def _indices(rank: int, prefix: str = "%i") -> list[str]:
    return [f"{prefix}{dim}" for dim in range(rank)]


# -- softmax ---------------------------------------------------------------------------------------


def _softmax(op: ir.Operation) -> str:
    """exp(x - max) / Σ exp(x - max), along one dimension."""
    source, target = _Array.of(op, 0), _Array.of(op, 1)
    along, kind = ir.IntegerAttr(op.attributes["dimension"]).value, source.element
    minus_infinity = ir.FloatAttr.get(_memory_type(op.operands[0]).element_type, float("-inf"))
    at = _indices(source.rank)
    loop = f"affine.for {at[along]} = 0 to {source.size(along)}"
    body = f"""
      %low = arith.constant {minus_infinity}
      %zero = arith.constant 0.0 : {kind}
      %top = {loop} iter_args(%m = %low) -> ({kind}) {{
        {source.load("%x", at)}
        %n = arith.maxnumf %m, %x : {kind}
        affine.yield %n : {kind}
      }}
      %all = {loop} iter_args(%s = %zero) -> ({kind}) {{
        {source.load("%x", at)}
        %d = arith.subf %x, %top : {kind}
        %e = math.exp %d : {kind}
        {target.store("%e", at)}
        %n = arith.addf %s, %e : {kind}
        affine.yield %n : {kind}
      }}
      {loop} {{
        {target.load("%e", at)}
        %q = arith.divf %e, %all : {kind}
        {target.store("%q", at)}
      }}"""
    return source.sizes() + "\n" + source.nest(at, body, but=[along])


# -- tiles -----------------------------------------------------------------------------------------


def _integers(op: ir.Operation, name: str) -> list[int]:
    return list(ir.DenseI64ArrayAttr(op.attributes[name])) if name in op.attributes else []


@dataclass(frozen=True)
class _Tiles:
    """Where in the packed array the element of the other at %i0, %i1, … lies: `text` computes the
    `subscripts`.
    """

    text: str
    subscripts: Sequence[str]

    @staticmethod
    def of(op: ir.Operation, rank: int) -> _Tiles:
        cut, tiles = _integers(op, "inner_dims_pos"), _integers(op, "static_inner_tiles")
        order = _integers(op, "outer_dims_perm") or list(range(rank))
        at, lines, outer, inner = _indices(rank), [], dict(enumerate(_indices(rank))), []
        open_ = len(op.operands) - tiles.count(DYNAMIC)
        for dim, tile in zip(cut, tiles, strict=True):
            if tile == DYNAMIC:
                lines += [
                    f"%q{dim} = arith.divui {at[dim]}, %a{open_} : index",
                    f"%r{dim} = arith.remui {at[dim]}, %a{open_} : index",
                ]
                outer[dim] = f"%q{dim}"
                inner.append(f"%r{dim}")
                open_ += 1
            else:
                outer[dim] = f"{at[dim]} floordiv {tile}"
                inner.append(f"{at[dim]} mod {tile}")
        return _Tiles("\n".join(lines), [*(outer[dim] for dim in order), *inner])

    def access(self, array: _Array, into: str, value: str = "") -> str:
        """A load into `into`, or a store of `value`: what is divided by a value is not affine."""
        where = self.subscripts
        made = array.store(value, where) if value else array.load(into, where)
        if not self.text:
            return made
        names = [f"%k{k}" for k in range(len(where))]
        applied = [
            f"{name} = affine.apply affine_map<(d) -> ({_in_d(each)})>({each.split()[0]})"
            for name, each in zip(names, where, strict=True)
        ]
        made = array.store(value, names) if value else array.load(into, names)
        return "\n".join([self.text, *applied, made.replace("affine.", "memref.")])


def _in_d(subscript: str) -> str:
    _, space, rest = subscript.partition(" ")
    return "d" + space + rest


def _pack(op: ir.Operation) -> str:
    """All of it is padding, but for what the source's elements fill."""
    source, target = _Array.of(op, 0), _Array.of(op, 1)
    padded = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))[2]
    places = _indices(target.rank)
    at, tiles = _indices(source.rank), _Tiles.of(op, source.rank)
    copy = source.load("%x", at) + "\n" + tiles.access(target, "", "%x")
    parts = [source.sizes(), source.nest(at, copy)]
    if padded:
        parts.insert(1, target.nest(places, target.store("%a2", places)))
        parts.insert(0, target.sizes())
    return "\n".join(parts)


def _unpack(op: ir.Operation) -> str:
    source, target = _Array.of(op, 0), _Array.of(op, 1)
    at, tiles = _indices(target.rank), _Tiles.of(op, target.rank)
    copy = tiles.access(source, "%x") + "\n" + target.store("%x", at)
    return target.sizes() + "\n" + target.nest(at, copy)


# -- Winograd --------------------------------------------------------------------------------------

_Matrix = Sequence[Sequence[Fraction]]


def _matrix(text: str) -> _Matrix:
    return [[Fraction(number) for number in row.split()] for row in text.split(";")]


@dataclass(frozen=True)
class _Winograd:
    """F(m x m, r x r) of Lavin, Gray 2016: factors of filter, input, output; scaled as in MLIR."""

    tile: int
    filter: _Matrix
    input: _Matrix
    output: _Matrix


_FMR = (
    _Winograd(
        2,
        _matrix("-1 0 0; 1/2 -1/2 1/2; 1/2 1/2 1/2; 0 0 1"),
        _matrix("-1 0 1 0; 0 -1 1 0; 0 1 1 0; 0 -1 0 1"),
        _matrix("1 1 1 0; 0 -1 1 1"),
    ),
    _Winograd(
        4,
        _matrix("1 0 0; -1/3 1/3 -1/3; -1/3 -1/3 -1/3; 1/12 -1/6 1/3; 1/12 1/6 1/3; 0 0 1"),
        _matrix(
            "1/4 0 -5/16 0 1/16 0; 0 1/4 -1/4 -1/16 1/16 0; 0 -1/4 -1/4 1/16 1/16 0;"
            "0 1/4 -1/8 -1/4 1/8 0; 0 -1/4 -1/8 1/4 1/8 0; 0 1/4 0 -5/16 0 1/16"
        ),
        _matrix("4 8 8 4 4 0; 0 -8 8 -8 8 0; 0 8 8 16 16 0; 0 -8 8 -32 32 16"),
    ),
    _Winograd(
        2,
        _matrix(
            "1 0 0 0 0; 1/6 -1/6 1/6 -1/6 1/6; -1/6 -1/6 -1/6 -1/6 -1/6;"
            "-4/15 2/15 -1/15 1/30 -1/60; 1/60 1/30 1/15 2/15 4/15; 0 0 0 0 1"
        ),
        _matrix(
            "1/8 3/16 -1/4 -3/16 1/8 0; 0 1/8 1/16 -5/16 1/8 0; 0 -1/8 -5/16 -1/16 1/8 0;"
            "0 1/4 -1/8 -1/4 1/8 0; 0 -1/8 -1/4 1/8 1/4 0; 0 1/8 3/16 -1/4 -3/16 1/8"
        ),
        _matrix("8 16 16 32 16 0; 0 -16 16 -16 32 8"),
    ),
)
"""By the number that MLIR has for F_2_3, F_4_3, F_2_5."""

_ONE: _Matrix = [[Fraction(1)]]
"""Along a dimension of extent 1 nothing is transformed."""


def _fmr(op: ir.Operation) -> _Winograd:
    return _FMR[ir.IntegerAttr(op.attributes["fmr"]).value]


def _sides(matrix: _Matrix, shape: Sequence[int]) -> tuple[_Matrix, _Matrix]:
    """The factors along height and width of tiles of that shape."""
    height, width = (_ONE if size == 1 else matrix for size in shape)
    return height, width


def _transformed(
    left: _Matrix, right: _Matrix, kind: str, load: Callable[[int, int], str]
) -> tuple[str, list[list[str]]]:
    """left · d · rightᵀ, written out, for the d whose elements `load` loads into %d…; its lines and
    the names of its elements.
    """
    rows, columns = range(len(left[0])), range(len(right[0]))
    lines = [load(i, j) for i in rows for j in columns]
    half, names = [], []
    for i, factors in enumerate(left):
        sums = [_sum(f"%t{i}_{j}", factors, [f"%d{k}_{j}" for k in rows], kind) for j in columns]
        lines += [line for made, _ in sums for line in made]
        half.append([name for _, name in sums])
    for i, values in enumerate(half):
        sums = [_sum(f"%u{i}_{j}", factors, values, kind) for j, factors in enumerate(right)]
        lines += [line for made, _ in sums for line in made]
        names.append([name for _, name in sums])
    return "\n".join(lines), names


def _sum(
    into: str, factors: Sequence[Fraction], values: Sequence[str], kind: str
) -> tuple[list[str], str]:
    """Its lines, whose names begin with `into`, and its name. There is no product with 1: one that
    is folded in the run and not in the reference would be rounded otherwise there.
    """
    lines: list[str] = []
    total = ""
    for k, (factor, value) in enumerate(zip(factors, values, strict=True)):
        if not factor:
            continue
        term, name = value, f"{into}s{k}"
        if abs(factor) != 1:
            term = f"{into}p{k}"
            lines += [
                f"{into}c{k} = arith.constant {float(factor):.17e} : {kind}",
                f"{term} = arith.mulf {into}c{k}, {value} : {kind}",
            ]
        if total:
            operation = "subf" if factor == -1 else "addf"
            lines.append(f"{name} = arith.{operation} {total}, {term} : {kind}")
            total = name
        elif factor == -1:
            lines.append(f"{name} = arith.negf {term} : {kind}")
            total = name
        else:
            total = term
    return lines, total


def _shape(op: ir.Operation, place: int) -> list[int]:
    return list(_memory_type(op.operands[place]).shape)


def _filter_transform(op: ir.Operation) -> str:
    """%a0[f, h, w, c] -> %a1[h, w, c, f]"""
    source, target = _Array.of(op, 0), _Array.of(op, 1)
    left, right = _sides(_fmr(op).filter, _shape(op, 0)[1:3])
    f, c = "%i0", "%i3"
    lines, names = _transformed(
        left, right, source.element, lambda i, j: source.load(f"%d{i}_{j}", [f, str(i), str(j), c])
    )
    stores = _stores(target, names, lambda i, j: [str(i), str(j), c, f])
    return source.sizes() + "\n" + source.nest(_indices(4), lines + "\n" + stores, but=[1, 2])


def _input_transform(op: ir.Operation) -> str:
    """%a0[n, h, w, c] -> %a1[i, j, tile of h, tile of w, n, c]"""
    source, target = _Array.of(op, 0), _Array.of(op, 1)
    fmr, (height, width) = _fmr(op), _shape(op, 1)[:2]
    left, right = _sides(fmr.input, (height, width))
    at = _indices(6)
    down, across = (fmr.tile if size > 1 else 1 for size in (height, width))
    lines, names = _transformed(
        left,
        right,
        source.element,
        lambda i, j: source.load(
            f"%d{i}_{j}", [at[4], f"{at[2]} * {down} + {i}", f"{at[3]} * {across} + {j}", at[5]]
        ),
    )
    stores = _stores(target, names, lambda i, j: [str(i), str(j), *at[2:]])
    return target.sizes() + "\n" + target.nest(at, lines + "\n" + stores, but=[0, 1])


def _output_transform(op: ir.Operation) -> str:
    """%a1[n, h, w, f] += of %a0[i, j, tile of h, tile of w, n, f]"""
    source, target = _Array.of(op, 0), _Array.of(op, 1)
    fmr, (height, width) = _fmr(op), _shape(op, 0)[:2]
    left, right = _sides(fmr.output, (height, width))
    at, kind = _indices(6), source.element
    down, across = (fmr.tile if size > 1 else 1 for size in (height, width))
    lines, names = _transformed(
        left, right, kind, lambda i, j: source.load(f"%d{i}_{j}", [str(i), str(j), *at[2:]])
    )
    parts = [lines]
    for i, row in enumerate(names):
        for j, name in enumerate(row):
            place = [at[4], f"{at[2]} * {down} + {i}", f"{at[3]} * {across} + {j}", at[5]]
            parts += [
                target.load(f"%o{i}_{j}", place),
                f"%w{i}_{j} = arith.addf {name}, %o{i}_{j} : {kind}",
                target.store(f"%w{i}_{j}", place),
            ]
    return source.sizes() + "\n" + source.nest(at, "\n".join(parts), but=[0, 1])


def _stores(
    target: _Array, names: Sequence[Sequence[str]], place: Callable[[int, int], Sequence[str]]
) -> str:
    return "\n".join(
        target.store(name, place(i, j)) for i, row in enumerate(names) for j, name in enumerate(row)
    )


_LOOPS: dict[str, Callable[[ir.Operation], str]] = {
    "linalg.softmax": _softmax,
    "linalg.pack": _pack,
    "linalg.unpack": _unpack,
    "linalg.winograd_filter_transform": _filter_transform,
    "linalg.winograd_input_transform": _input_transform,
    "linalg.winograd_output_transform": _output_transform,
}
