"""The linear form of every index value of a body, computed from its definition where it is first
asked for.

MLIR index values -> linear forms; arithmetic that may wrap around in its width has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from mlir import ir

from avial_lab.compiler.analysis.accesses.linear import Linear, apply_map, extreme, ranged, unknown
from avial_lab.compiler.analysis.accesses.view_maps import open_extents
from avial_lab.compiler.ir.operations import integer_of
from avial_lab.compiler.ir.views import DYNAMIC, VIEWS, defining
from avial_lab.core.buffers import UNBOUNDED

NO_SYMBOLS: Mapping[ir.Value, Linear] = MappingProxyType({})
NO_EXTENTS: Mapping[ir.Value, Sequence[Linear]] = MappingProxyType({})


class IndexForms:
    """Forms by value. Loops set those of their variables; `launch_ids` are those of the launch
    being read; `symbols` are those of numbers from outside that have no value yet, `extents` those
    of the sizes of memrefs from outside.

    `vague` collects the symbols that something depends on in a way no form follows: who knows more
    of them may read again.
    """

    def __init__(
        self,
        symbols: Mapping[ir.Value, Linear] = NO_SYMBOLS,
        extents: Mapping[ir.Value, Sequence[Linear]] = NO_EXTENTS,
    ) -> None:
        self._symbols = symbols
        self._extents = dict(extents)
        self._from_outside = bool(symbols) or bool(extents)
        self.launch_ids: dict[tuple[str, str], Linear] = {}
        self.vague: set[str] = set()
        self._known: dict[ir.Value, Linear] = {}

    def __setitem__(self, value: ir.Value, form: Linear) -> None:
        self._known[value] = form

    def of(self, value: ir.Value) -> Linear:
        known = self._known.get(value)
        if known is None and self._symbols:
            known = self._symbols.get(value)
        if known is not None:
            return known
        op = defining(value)
        compute = _FORMS.get(op.name) if op is not None else None
        form = compute(self, op) if compute is not None and op is not None else unknown()
        if self._from_outside and op is not None and form.is_vague:
            known = [f for v in op.operands if (f := self._known.get(v) or self._symbols.get(v))]
            if not any(each.is_vague for each in known):
                self.lose(*known)
        self._known[value] = form
        return form

    def constant(self, value: ir.Value) -> int | None:
        """The value where it is one constant."""
        form = self.of(value)
        return form.constant if not form.terms else None

    def extents(self, value: ir.Value) -> Sequence[Linear]:
        """The shape of a memref, open sizes by what they are made of; UNBOUNDED stands for one of
        memory that nobody has given a size.
        """
        known = self._extents.get(value)
        if known is None:
            known = self._extents[value] = self._sizes(value)
        return known

    def _sizes(self, value: ir.Value) -> Sequence[Linear]:
        memref = value.type
        if isinstance(memref, ir.UnrankedMemRefType):
            return ()
        shape = memref.shape
        if memref.has_static_shape:
            return [Linear(size) for size in shape]
        op = defining(value)
        found = open_extents(self, op) if op is not None else None
        if found is None or len(found) != len(shape):
            view = op is not None and op.name in VIEWS
            found = [unknown() if view else Linear(UNBOUNDED) for _ in shape]
        return [
            known if size == DYNAMIC else Linear(size)
            for size, known in zip(shape, found, strict=True)
        ]

    def apply(self, affine_map: ir.AffineMap, operands: Sequence[Linear]) -> list[Linear]:
        """The forms of a map's results."""
        results = apply_map(affine_map, operands)
        if self._from_outside and any(result.is_vague for result in results):
            self.lose(*operands)
        return results

    def extreme(self, forms: Sequence[Linear], pick: Callable[..., int]) -> Linear:
        """The max (min) of several."""
        form = extreme(forms, pick)
        if self._from_outside and form.is_vague:
            self.lose(*forms)
        return form

    def lose(self, *forms: Linear) -> None:
        """Something depends on these forms that is not known from now on."""
        self.vague.update(v.symbol for form in forms for v, _ in form.terms if v.symbol)


def _constant_form(_forms: IndexForms, op: ir.Operation) -> Linear:
    value = integer_of(op.attributes["value"])
    return Linear(value) if value is not None else unknown()


def _fits(op: ir.Operation, form: Linear) -> Linear:
    """`form`, unless arithmetic in the result's width might wrap around."""
    result = op.results[0].type
    if not isinstance(result, ir.IntegerType):
        return form
    bounds = form.bounds()
    half = 1 << (result.width - 1)
    return form if bounds is not None and -half <= bounds[0] and bounds[1] < half else unknown()


def _sum_form(forms: IndexForms, op: ir.Operation) -> Linear:
    sign = -1 if op.name.endswith(("subi", ".sub")) else 1
    return _fits(op, forms.of(op.operands[0]).plus(forms.of(op.operands[1]), sign))


def _product_form(forms: IndexForms, op: ir.Operation) -> Linear:
    a, b = forms.of(op.operands[0]), forms.of(op.operands[1])
    if not b.terms:
        return _fits(op, a.times(b.constant))
    if not a.terms:
        return _fits(op, b.times(a.constant))
    return unknown()


def _same_form(forms: IndexForms, op: ir.Operation) -> Linear:
    return _fits(op, forms.of(op.operands[0]))


def _unsigned_form(forms: IndexForms, op: ir.Operation) -> Linear:
    form = forms.of(op.operands[0])
    bounds = form.bounds()
    return _fits(op, form) if bounds is not None and bounds[0] >= 0 else unknown()


def _quotient_form(forms: IndexForms, op: ir.Operation) -> Linear:
    bounds, divisor = forms.of(op.operands[0]).bounds(), forms.constant(op.operands[1])
    if bounds is None or divisor is None or divisor <= 0 or bounds[0] < 0:
        return unknown()
    if "ceil" in op.name:
        return ranged(-(-bounds[0] // divisor), -(-bounds[1] // divisor))
    return ranged(bounds[0] // divisor, bounds[1] // divisor)


def _remainder_form(forms: IndexForms, op: ir.Operation) -> Linear:
    bounds, divisor = forms.of(op.operands[0]).bounds(), forms.constant(op.operands[1])
    if bounds is None or divisor is None or divisor <= 0 or bounds[0] < 0:
        return unknown()
    if bounds[0] == bounds[1]:
        return Linear(bounds[0] % divisor)
    return ranged(0, min(bounds[1], divisor - 1))


def _extreme_form(forms: IndexForms, op: ir.Operation) -> Linear:
    values = [forms.of(operand) for operand in op.operands]
    return extreme(values, max if "max" in op.name else min)


def _select_form(forms: IndexForms, op: ir.Operation) -> Linear:
    bounds = [forms.of(op.operands[k]).bounds() for k in (1, 2)]
    if bounds[0] is None or bounds[1] is None:
        return unknown()
    return ranged(min(bounds[0][0], bounds[1][0]), max(bounds[0][1], bounds[1][1]))


def _dim_form(forms: IndexForms, op: ir.Operation) -> Linear:
    dimension = forms.constant(op.operands[1])
    extents = forms.extents(op.operands[0])
    if dimension is None or not 0 <= dimension < len(extents):
        return unknown()
    return unknown() if extents[dimension].constant == UNBOUNDED else extents[dimension]


def _map_form(forms: IndexForms, op: ir.Operation) -> Linear:
    results = apply_map(op.attributes["map"].value, [forms.of(operand) for operand in op.operands])
    return extreme(results, max if op.name == "affine.max" else min)


def _gpu_form(forms: IndexForms, op: ir.Operation) -> Linear:
    """`gpu.thread_id x` and its kin inside a launch; `global_id` = block_id × block_dim +
    thread_id.
    """
    axis = str(op.attributes["dimension"]).rstrip(">").rpartition(" ")[2].rpartition("<")[2]
    name = op.name.partition(".")[2]
    ids = forms.launch_ids
    if name != "global_id":
        return ids.get((name, axis)) or unknown()
    if ("block_id", axis) not in ids or ids["block_dim", axis].terms:
        return unknown()
    return ids["block_id", axis].times(ids["block_dim", axis].constant).plus(ids["thread_id", axis])


_FORMS: dict[str, Callable[[IndexForms, ir.Operation], Linear]] = {
    "arith.constant": _constant_form,
    "index.constant": _constant_form,
    "arith.addi": _sum_form,
    "arith.subi": _sum_form,
    "index.add": _sum_form,
    "index.sub": _sum_form,
    "arith.muli": _product_form,
    "index.mul": _product_form,
    "arith.index_cast": _same_form,
    "arith.extsi": _same_form,
    "arith.trunci": _same_form,
    "index.casts": _same_form,
    "arith.index_castui": _unsigned_form,
    "arith.extui": _unsigned_form,
    "index.castu": _unsigned_form,
    "arith.divsi": _quotient_form,
    "arith.divui": _quotient_form,
    "arith.floordivsi": _quotient_form,
    "arith.ceildivsi": _quotient_form,
    "arith.ceildivui": _quotient_form,
    "arith.remsi": _remainder_form,
    "arith.remui": _remainder_form,
    "arith.minsi": _extreme_form,
    "arith.maxsi": _extreme_form,
    "arith.select": _select_form,
    "memref.dim": _dim_form,
    "affine.apply": _map_form,
    "affine.min": _map_form,
    "affine.max": _map_form,
    "gpu.thread_id": _gpu_form,
    "gpu.block_id": _gpu_form,
    "gpu.block_dim": _gpu_form,
    "gpu.grid_dim": _gpu_form,
    "gpu.global_id": _gpu_form,
}
