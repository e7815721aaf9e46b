"""MLIR index values as affine expressions, and conditions on them as isl constraints.

ir.Value -> Affine | None, ir.Value (i1) -> Condition | None. Looked through: constants, casts,
sums, products with a constant, quotients and remainders by a positive constant, min, max, select,
affine.apply, sizes of memrefs. Arithmetic in fewer than 64 bits counts only where it is proved not
to wrap around (or says so: `overflow<nsw>`); that of `index` and i64 is taken not to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.polyhedral.affine import Affine, Names, extreme
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.ir.locations import name_of
from avial_lab.compiler.ir.operations import integer_of
from avial_lab.compiler.ir.views import DYNAMIC, defining, long_dimensions, reassociation_of


@dataclass(frozen=True)
class Condition:
    """A constraint in isl's text that holds exactly where the value is true."""

    text: str

    def negated(self) -> Condition:
        return Condition(f"not ({self.text})")


@dataclass(frozen=True)
class Scope:
    """Where the walk stands: the variables of the loops around, and what is known to hold there."""

    names: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()

    def inside(self, names: Sequence[str], constraints: Sequence[str]) -> Scope:
        return Scope((*self.names, *names), (*self.constraints, *constraints))

    def set_text(
        self, tuple_name: str, parameters: Sequence[str], choices: Mapping[str, str]
    ) -> str:
        where = " and ".join(f"({text})" for text in self.constraints) or "true"
        head = f"[{', '.join(parameters)}] -> {{ {tuple_name}[{', '.join(self.names)}]"
        return f"{head} : {quantified(where, choices)} }}"


def quantified(text: str, choices: Mapping[str, str], variables: Sequence[str] = ()) -> str:
    """The constraints with the choices they name, and `variables`, as existential variables.

    >>> quantified("x = next", {"next": "(i < n and next = i + 1) or (i >= n and next = 0)"})
    'exists (next : x = next and ((i < n and next = i + 1) or (i >= n and next = 0)))'
    """
    if not choices and not variables:
        return text
    used: list[str] = []
    parts = [text]
    while parts:
        fresh = [n for n in re.findall(r"[A-Za-z_]\w*", parts.pop()) if n in choices]
        for name in dict.fromkeys(fresh):
            if name not in used:
                used.append(name)
                parts.append(choices[name])
    names = list(dict.fromkeys([*variables, *used]))
    if not names:
        return text
    return (
        f"exists ({', '.join(names)} : {' and '.join([text, *(f'({choices[n]})' for n in used)])})"
    )


class Indices:
    """The expression of every value; of those inside loops, to be asked for first where the walk
    meets their definition, since what is known there decides whether they can wrap around.

    A value from outside all loops of the piece that is analysed is a parameter, whatever computes
    it: it does not change while the piece runs. One computed inside a loop has no expression (None)
    unless its operation is understood.
    """

    def __init__(self, inside: Callable[[ir.Value], bool]) -> None:
        self.scope = Scope()
        self.names = Names()
        self.parameters: dict[str, ir.Value | None] = {}
        self.sizes: dict[str, tuple[ir.Value, int]] = {}
        self.known_of_parameters: list[str] = []
        self.choices: dict[str, str] = {}
        self.inside_a_loop = inside
        self._forms: dict[ir.Value, Affine | None] = {}
        self._sizes: dict[tuple[ir.Value, int], Affine] = {}

    def __setitem__(self, value: ir.Value, form: Affine | None) -> None:
        self._forms[value] = form

    def of(self, value: ir.Value) -> Affine | None:
        if value in self._forms:
            return self._forms[value]
        op = defining(value)
        compute = _FORMS.get(op.name) if op is not None and _is_integer(value.type) else None
        fixed = not self.inside_a_loop(value)
        # What is fixed may be asked for first where more is known than holds wherever it is used.
        scope, self.scope = self.scope, Scope() if fixed else self.scope
        form = compute(self, op) if compute is not None and op is not None else None
        self.scope = scope
        if form is not None and not form.fits:
            form = None
        if form is None and fixed and _is_integer(value.type):
            form = self._parameter(value)
        self._forms[value] = form
        return form

    def constant(self, value: ir.Value) -> int | None:
        form = self.of(value)
        return form.constant if form is not None and form.is_constant else None

    def _parameter(self, value: ir.Value) -> Affine:
        name = self.names.fresh(name_of(value.location) or _default_name(value))
        self.parameters[name] = value
        if isinstance(value.type, ir.IntegerType):
            low, high = _range_of(value.type)
            self.known_of_parameters.append(f"{low} <= {name} <= {high}")
        return Affine.of(name)

    def size_parameter(self, memref: ir.Value, array: str, dimension: int) -> Affine:
        """The parameter for a size that only run time knows: `A_0` for dimension 0 of A."""
        found = self._sizes.get((memref, dimension))
        if found is None:
            name = self.names.fresh(f"{array}_{dimension}")
            self.parameters[name] = None
            self.sizes[name] = memref, dimension
            self.known_of_parameters.append(f"{name} >= 0")
            found = self._sizes[memref, dimension] = Affine.of(name)
        return found

    def always(self, constraint: str) -> bool:
        """Whether `constraint` holds in every iteration at the place where the walk stands."""
        broken = self.scope.inside((), (*self.known_of_parameters, f"not ({constraint})"))
        text = broken.set_text("", tuple(self.parameters), self.choices)
        return limited(lambda: isl.Set(text).is_empty(), lambda: False)

    def choice(self, result: ir.Value, condition: Condition, a: Affine, b: Affine) -> Affine:
        """`a` where the condition holds, else `b`: a name of its own, which isl is told about."""
        name = self.names.fresh(name_of(result.location) or "choice")
        self.choices[name] = (
            f"(({condition.text}) and {name} = {a}) or (not ({condition.text}) and {name} = {b})"
        )
        return Affine.of(name)

    def fitting(self, form: Affine | None, kind: ir.Type) -> Affine | None:
        """`form`, unless a value of it might not fit into a signed integer of that type."""
        if form is None or not isinstance(kind, ir.IntegerType) or kind.width >= 64:
            return form
        low, high = _range_of(kind)
        if form.is_constant:
            return form if low <= form.constant <= high else None
        return form if self.always(f"{low} <= {form} <= {high}") else None

    def non_negative(self, form: Affine | None) -> Affine | None:
        if form is None or (form.constant < 0 if form.is_constant else False):
            return None
        return form if form.is_constant or self.always(f"{form} >= 0") else None

    # -- affine maps

    def apply(self, affine_map: ir.AffineMap, operands: Sequence[ir.Value]) -> list[Affine | None]:
        """The map's results for those operands (dimensions, then symbols)."""
        forms = [self.of(operand) for operand in operands]
        split = affine_map.n_dims
        return [evaluate(expr, forms[:split], forms[split:]) for expr in affine_map.results]

    def integer_set(
        self, attribute: ir.Attribute, operands: Sequence[ir.Value]
    ) -> Condition | None:
        """An affine_set of those operands as one constraint."""
        texts = []
        relations, as_map = _set_as_map(attribute)
        for form, relation in zip(self.apply(as_map, operands), relations, strict=True):
            if form is None:
                return None
            texts.append(f"{form} {relation} 0")
        return Condition(" and ".join(texts) or "true")

    # -- conditions

    def condition(self, value: ir.Value) -> Condition | None:
        """The constraint that an i1 computed from affine values stands for."""
        op = defining(value)
        if op is None:
            return None
        if op.name == "arith.constant":
            return Condition("true" if ir.IntegerAttr(op.attributes["value"]).value else "false")
        if op.name in ("arith.cmpi", "index.cmp"):
            return self._comparison(op)
        if op.name in ("arith.andi", "arith.ori", "arith.xori"):
            sides = [self.condition(operand) for operand in op.operands]
            if sides[0] is None or sides[1] is None:
                return None
            a, b = sides[0].text, sides[1].text
            if op.name == "arith.xori":
                return Condition(f"(({a}) and not ({b})) or (not ({a}) and ({b}))")
            return Condition(f"({a}) {'and' if op.name == 'arith.andi' else 'or'} ({b})")
        return None

    def _comparison(self, op: ir.Operation) -> Condition | None:
        a, b = self.of(op.operands[0]), self.of(op.operands[1])
        if op.name == "index.cmp":
            spelled = _SPELLED.findall(str(op.attributes["pred"]))[-1]
        else:
            spelled = _PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value]
        if spelled.startswith("u"):
            a, b = self.non_negative(a), self.non_negative(b)
        if a is None or b is None:
            return None
        return Condition(f"{a} {_RELATIONS[spelled[-2:]]} {b}")


_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_SPELLED = re.compile(r"\w+")  # in `#index<cmp_predicate ult>`, whatever stands around it
_RELATIONS = {"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def evaluate(
    expr: ir.AffineExpr, dims: Sequence[Affine | None], symbols: Sequence[Affine | None]
) -> Affine | None:
    """The expression for those dimensions and symbols; None where it is not affine in them."""
    if isinstance(expr, ir.AffineDimExpr):
        return dims[expr.position]
    if isinstance(expr, ir.AffineSymbolExpr):
        return symbols[expr.position]
    if isinstance(expr, ir.AffineConstantExpr):
        return Affine(expr.value)
    binary = ir.AffineBinaryExpr(expr)
    a, b = evaluate(binary.lhs, dims, symbols), evaluate(binary.rhs, dims, symbols)
    if a is None or b is None:
        return None
    if isinstance(expr, ir.AffineAddExpr):
        return a.plus(b)
    if isinstance(expr, ir.AffineMulExpr):
        return _product(a, b)
    if not b.is_constant or b.constant <= 0:
        return None
    if isinstance(expr, ir.AffineModExpr):
        return a.mod(b.constant)
    if isinstance(expr, ir.AffineFloorDivExpr):
        return a.floordiv(b.constant)
    return a.ceildiv(b.constant)


def _product(a: Affine, b: Affine) -> Affine | None:
    if b.is_constant:
        return a.times(b.constant)
    return b.times(a.constant) if a.is_constant else None


def _set_as_map(attribute: ir.Attribute) -> tuple[list[str], ir.AffineMap]:
    """`affine_set<(d0) : (d0 - 1 >= 0, d0 == 0)>` -> [">=", "="] and `(d0) -> (d0 - 1, d0)`.

    The bindings do not hand out the set behind the attribute, so it is read as it prints.
    """
    head, _, body = str(attribute).removeprefix("affine_set<").removesuffix(">").partition(" : ")
    relations: list[str] = []
    left_sides: list[str] = []
    for constraint in _split_at_commas(body.strip()[1:-1]):
        relations.append(">=" if constraint.endswith(">= 0") else "=")
        left_sides.append(constraint.rpartition(relations[-1])[0].rstrip("= "))
    text = f"affine_map<{head} -> ({', '.join(left_sides)})>"
    return relations, ir.AffineMapAttr(ir.Attribute.parse(text, attribute.context)).value


def _split_at_commas(text: str) -> list[str]:
    """The parts between commas; affine expressions hold none in their parentheses."""
    return [part.strip() for part in text.split(",") if part.strip()]


def _is_integer(kind: ir.Type) -> bool:
    """Of at most 64 bits: subscripts and parameters of the ranks' code have no more."""
    return isinstance(kind, ir.IndexType) or (isinstance(kind, ir.IntegerType) and kind.width <= 64)


def _range_of(kind: ir.IntegerType) -> tuple[int, int]:
    half = 1 << (kind.width - 1)
    return -half, half - 1


def _default_name(value: ir.Value) -> str:
    owner = value.owner
    return f"arg{value.arg_number}" if isinstance(owner, ir.Block) else "n"


# -- operations


def _constant(_indices: Indices, op: ir.Operation) -> Affine | None:
    value = integer_of(op.attributes["value"])
    return Affine(value) if value is not None else None


def _does_not_wrap(op: ir.Operation) -> bool:
    """Whether the operation promises that its signed result fits."""
    return "overflowFlags" in op.attributes and "nsw" in str(op.attributes["overflowFlags"])


def _sum(indices: Indices, op: ir.Operation) -> Affine | None:
    a, b = indices.of(op.operands[0]), indices.of(op.operands[1])
    if a is None or b is None:
        return None
    form = a.plus(b, -1 if op.name.endswith(("subi", ".sub")) else 1)
    return form if _does_not_wrap(op) else indices.fitting(form, op.results[0].type)


def _times(indices: Indices, op: ir.Operation) -> Affine | None:
    a, b = indices.of(op.operands[0]), indices.of(op.operands[1])
    form = _product(a, b) if a is not None and b is not None else None
    return form if _does_not_wrap(op) else indices.fitting(form, op.results[0].type)


def _shift_left(indices: Indices, op: ir.Operation) -> Affine | None:
    form, places = indices.of(op.operands[0]), indices.constant(op.operands[1])
    if form is None or places is None or not 0 <= places < 32:
        return None
    return indices.fitting(form.times(1 << places), op.results[0].type)


def _same(indices: Indices, op: ir.Operation) -> Affine | None:
    return indices.fitting(indices.of(op.operands[0]), op.results[0].type)


def _unsigned(indices: Indices, op: ir.Operation) -> Affine | None:
    return indices.fitting(indices.non_negative(indices.of(op.operands[0])), op.results[0].type)


def _quotient(indices: Indices, op: ir.Operation) -> Affine | None:
    """Signed division rounds towards zero, so the dividend has to be non-negative, but for the
    operations that say how they round.
    """
    form, divisor = indices.of(op.operands[0]), indices.constant(op.operands[1])
    if form is None or divisor is None or divisor <= 0:
        return None
    name = op.name.partition(".")[2]
    if name in ("ceildivsi", "ceildivs"):
        return form.ceildiv(divisor)
    if name not in ("floordivsi", "floordivs"):
        form = indices.non_negative(form)
        if form is None:
            return None
    return form.ceildiv(divisor) if name.startswith("ceil") else form.floordiv(divisor)


def _remainder(indices: Indices, op: ir.Operation) -> Affine | None:
    form, divisor = indices.non_negative(indices.of(op.operands[0])), indices.of(op.operands[1])
    if form is None or divisor is None:
        return None
    if divisor.is_constant:
        return form.mod(divisor.constant) if divisor.constant > 0 else None
    # A periodic edge, `(i + 1) mod n`: affine as long as it goes round once at most.
    if indices.always(f"{form} < {divisor}"):
        return form
    if indices.always(f"{form} < {divisor.times(2)}"):
        again = Condition(f"{form} >= {divisor}")
        return indices.choice(op.results[0], again, form.plus(divisor, -1), form)
    return None


def _extreme(indices: Indices, op: ir.Operation) -> Affine | None:
    forms = [indices.of(operand) for operand in op.operands]
    if op.name.endswith("ui") or op.name.endswith(("maxu", "minu")):
        forms = [indices.non_negative(form) for form in forms]
    known = [form for form in forms if form is not None]
    return extreme(known, _min_or_max(op)) if len(known) == len(forms) else None


def _map_extreme(indices: Indices, op: ir.Operation) -> Affine | None:
    forms = indices.apply(op.attributes["map"].value, list(op.operands))
    known = [form for form in forms if form is not None]
    return extreme(known, _min_or_max(op)) if len(known) == len(forms) else None


def _min_or_max(op: ir.Operation) -> str:
    return "max" if "max" in op.name else "min"


def _apply(indices: Indices, op: ir.Operation) -> Affine | None:
    return indices.apply(op.attributes["map"].value, list(op.operands))[0]


def _select(indices: Indices, op: ir.Operation) -> Affine | None:
    condition = indices.condition(op.operands[0])
    a, b = indices.of(op.operands[1]), indices.of(op.operands[2])
    if a is not None and a == b:
        return a
    if condition is None or a is None or b is None:
        return None
    return indices.choice(op.results[0], condition, a, b)


def _dim(indices: Indices, op: ir.Operation) -> Affine | None:
    dimension = indices.constant(op.operands[1])
    return size_of(indices, op.operands[0], dimension) if dimension is not None else None


def size_of(indices: Indices, value: ir.Value, dimension: int) -> Affine | None:
    """The size of a memref in that dimension, through the views it is made of."""
    if not isinstance(value.type, ir.MemRefType):
        return None
    shape = ir.MemRefType(value.type).shape
    if not 0 <= dimension < len(shape):
        return None
    if shape[dimension] != DYNAMIC:
        return Affine(shape[dimension])
    op = defining(value)
    place = sum(size == DYNAMIC for size in shape[:dimension])
    if op is None:
        if indices.inside_a_loop(value):
            return None
        name = name_of(value.location) or _default_name(value)
        return indices.size_parameter(value, name, dimension)
    if op.name in ("memref.alloc", "memref.alloca"):
        return indices.of(op.operands[place])
    if op.name in ("memref.cast", "memref.memory_space_cast", "memref.assume_alignment"):
        return size_of(indices, op.operands[0], dimension)
    if op.name == "memref.subview":
        offsets = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[1]
        return indices.of(list(op.operands)[1 + offsets + place])  # what is dropped is no operand
    if op.name == "memref.collapse_shape":
        source = ir.MemRefType(op.operands[0].type).shape
        ones = {dim for dim, size in enumerate(source) if size == 1}
        long = long_dimensions(reassociation_of(op)[dimension], ones)
        if len(long) == 1:
            return size_of(indices, op.operands[0], long[0])
    if indices.inside_a_loop(value):
        return None
    return indices.size_parameter(value, name_of(value.location) or "view", dimension)


_FORMS: dict[str, Callable[[Indices, ir.Operation], Affine | None]] = {
    "arith.constant": _constant,
    "index.constant": _constant,
    "arith.addi": _sum,
    "arith.subi": _sum,
    "index.add": _sum,
    "index.sub": _sum,
    "arith.muli": _times,
    "index.mul": _times,
    "arith.shli": _shift_left,
    "index.shl": _shift_left,
    "arith.index_cast": _same,
    "arith.extsi": _same,
    "arith.trunci": _same,
    "index.casts": _same,
    "arith.index_castui": _unsigned,
    "arith.extui": _unsigned,
    "index.castu": _unsigned,
    "arith.divsi": _quotient,
    "arith.divui": _quotient,
    "arith.floordivsi": _quotient,
    "arith.ceildivsi": _quotient,
    "arith.ceildivui": _quotient,
    "index.divs": _quotient,
    "index.divu": _quotient,
    "index.floordivs": _quotient,
    "index.ceildivs": _quotient,
    "arith.remsi": _remainder,
    "arith.remui": _remainder,
    "index.rems": _remainder,
    "index.remu": _remainder,
    "arith.minsi": _extreme,
    "arith.maxsi": _extreme,
    "arith.minui": _extreme,
    "arith.maxui": _extreme,
    "index.mins": _extreme,
    "index.maxs": _extreme,
    "arith.select": _select,
    "memref.dim": _dim,
    "affine.apply": _apply,
    "affine.min": _map_extreme,
    "affine.max": _map_extreme,
}
