"""An innermost loop is cut in three at the iteration that writes what all others only read.

    for j: A[i, j] = min(A[i, j], A[i, k] + A[k, j])        A[i, k] is written where j = k

An affine.for -> what runs in its place. Before and behind that iteration the element stays.

Source: M. Griebl, P. Feautrier, C. Lengauer, Index set splitting, IJPP 28 (2000).
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.ir.dialects.avial import rebuilt_with
from avial_lab.compiler.ir.nesting import defined_in
from avial_lab.compiler.ir.operations import attributes_of, operations_in


@dataclass(frozen=True)
class _Place:
    """`form` over `dims` and `symbols`: the value of a subscript."""

    form: ir.AffineExpr
    dims: tuple[ir.Value, ...]
    symbols: tuple[ir.Value, ...]

    @property
    def key(self) -> object:
        """The same for the same value: what it is of alone, where it is just that."""
        plain = self.form.maybe_downcast()
        if isinstance(plain, ir.AffineDimExpr):
            return self.dims[plain.position]
        if isinstance(plain, ir.AffineSymbolExpr):
            return self.symbols[plain.position]
        return str(self.form), self.dims, self.symbols


def cut_at_element(loop: ir.Operation) -> list[ir.Operation]:
    """The loops that run instead of `loop`, one after the other; itself where nothing is cut."""
    at = _writing_iteration(loop)
    if at is None:
        return [loop]
    parts: list[ir.Operation] = []
    with ir.InsertionPoint(loop), loop.location:
        for low, high in ((None, 0), (0, 1), (1, None)):
            part = loop.clone().operation
            if low is not None:
                part = _with_bound(part, "lowerBoundMap", at, low)
            if high is not None:
                part = _with_bound(part, "upperBoundMap", at, high)
            parts.append(part)
    loop.erase()
    return parts


def _writing_iteration(loop: ir.Operation) -> _Place | None:
    """The iteration that writes an element which the others read; the same for all stores."""
    if loop.name != "affine.for" or len(loop.results):
        return None
    if ir.IntegerAttr(loop.attributes["step"]).value != 1:
        return None
    inside = list(operations_in(loop))
    variable = loop.regions[0].blocks[0].arguments[0]
    for load in (op for op in inside if op.name == "affine.load"):
        memory, *where = load.operands
        stores = [op for op in inside if op.name == "affine.store" and op.operands[1] == memory]
        if not stores or any(defined_in(loop, value) for value in (memory, *where)):
            continue
        read = _subscripts(load, where)
        met = [_met(read, _subscripts(store, list(store.operands)[2:]), variable)
               for store in stores]  # fmt: skip
        if met[0] is not None and all(place == met[0] for place in met):
            return read[met[0]]
    return None


def _subscripts(access: ir.Operation, where: list[ir.Value]) -> list[_Place]:
    form = ir.AffineMapAttr(access.attributes["map"]).value
    dims, symbols = tuple(where[: form.n_dims]), tuple(where[form.n_dims :])
    return [_Place(result, dims, symbols) for result in form.results]


def _met(read: list[_Place], written: list[_Place], variable: ir.Value) -> int | None:
    """The one subscript that is the loop's variable where it writes, if all others are alike."""
    differing = [k for k, (a, b) in enumerate(zip(read, written, strict=True)) if a.key != b.key]
    if len(differing) == 1 and written[differing[0]].key == variable:
        return differing[0]
    return None


def _with_bound(loop: ir.Operation, name: str, at: _Place, more: int) -> ir.Operation:
    """The loop with one bound more: the place, or that many behind it."""
    attributes = attributes_of(loop)
    form = ir.AffineMapAttr(attributes[name]).value
    dims, symbols = len(at.dims), len(at.symbols)
    moved = at.form.shift_dims(dims, form.n_dims).shift_symbols(symbols, form.n_symbols)
    wider = ir.AffineMap.get(
        form.n_dims + dims, form.n_symbols + symbols, [*form.results, moved + more]
    )
    attributes[name] = ir.AffineMapAttr.get(wider)
    lows, highs, _ = ir.DenseI32ArrayAttr(attributes["operandSegmentSizes"])
    bounds = {"lowerBoundMap": list(loop.operands)[:lows],
              "upperBoundMap": list(loop.operands)[lows : lows + highs]}  # fmt: skip
    own = bounds[name]
    bounds[name] = [*own[: form.n_dims], *at.dims, *own[form.n_dims :], *at.symbols]
    low, high = bounds["lowerBoundMap"], bounds["upperBoundMap"]
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([len(low), len(high), 0])
    return rebuilt_with(loop, [*low, *high], attributes)
