"""A plain function in the form the drop-in analysis works on.

Module with func.func of affine, scf, linalg, memref -> the same values computed by loops over
memory: calls written out, no linalg, loops that count in `index`, scratch memory where it belongs,
and no value handed from loop to loop at control level but through memory.

    before:  linalg.matmul …       %s = affine.for … iter_args(…)       scf.for %i … : i32
    after:   affine.for … {…}      affine.for … { store %next, %sum[] }  scf.for %i … : index

Every operation keeps its place in the cell, and every element its order of additions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from mlir import ir, passmanager

from avial_lab.compiler.catalogue import NORMALISE
from avial_lab.compiler.ir.divisors import refuse_divisors
from avial_lab.compiler.ir.effects import LOADS
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.upstream import spelled
from avial_lab.core.errors import PassError, VerifyError


@dataclass(frozen=True)
class OnlyLoops:
    """Refuse what would be one big step to the analysis: tensors, and linalg without loops."""

    def __call__(self, module: ir.Operation) -> None:
        for op in operations_in(module):
            if any(isinstance(v.type, ir.RankedTensorType) for v in (*op.operands, *op.results)):
                raise PassError(
                    f"{op.name} works on tensors, which could not be bufferized",
                    span=span_of(op.location),
                    hint="take memrefs as arguments; one-shot-bufferize turns tensors into them",
                )
            if op.name.startswith("linalg."):
                raise PassError(
                    f"{op.name} could not be lowered to loops", span=span_of(op.location)
                )

    def __str__(self) -> str:
        return "only-loops"


@dataclass(frozen=True)
class KeepPlaces:
    """What a named operation was made of stands where that stands: MLIR forgets it."""

    def __call__(self, module: ir.Operation) -> None:
        for op in operations_in(module):
            if op.name == "linalg.generic":
                for inner in operations_in(op):
                    if span_of(inner.location) is None:
                        inner.location = op.location

    def __str__(self) -> str:
        return "keep-places"


@dataclass(frozen=True)
class LinalgToLoops:
    """Loops of affine, the form that is analysed best, where the sizes are symbols to them: not so
    for a window that an scf loop cuts out.
    """

    def __call__(self, module: ir.Operation) -> None:
        cut = any(
            op.name == "linalg.generic" and any(_is_cut_in_a_loop(each) for each in op.operands)
            for op in operations_in(module)
        )
        with module.context:
            _run(module, f"convert-linalg-to-{'' if cut else 'affine-'}loops")

    def __str__(self) -> str:
        return "linalg-to-loops"


def _is_cut_in_a_loop(value: ir.Value) -> bool:
    kind = value.type
    if not isinstance(kind, ir.MemRefType) or kind.has_static_shape:
        return False
    owner = value.owner
    around = owner.owner if isinstance(owner, ir.Block) else owner.operation.parent
    return around is not None and around.operation.name != "func.func"


@dataclass(frozen=True)
class ConstantGlobals:
    """A table that the program has values for and never writes is a constant: every rank has it.

    before:  memref.global "private" @w : memref<2xf32> = dense<[1.0, 2.0]>
    after:   memref.global "private" constant @w : memref<2xf32> = dense<[1.0, 2.0]>
    """

    def __call__(self, module: ir.Operation) -> None:
        uses: dict[str, list[ir.Operation]] = {}
        for op in operations_in(module):
            if op.name == "memref.get_global":
                users = uses.setdefault(ir.FlatSymbolRefAttr(op.attributes["name"]).value, [])
                users += [use.owner.operation for use in op.results[0].uses]
        for op in operations_in(module):
            if op.name == "memref.global" and _has_values(op):
                users = uses.get(ir.StringAttr(op.attributes["sym_name"]).value, [])
                if all(user.name in _READS for user in users):
                    op.attributes["constant"] = ir.UnitAttr.get(module.context)

    def __str__(self) -> str:
        return "constant-globals"


_READS = (*LOADS, "affine.vector_load", "vector.load", "memref.dim")


def _has_values(table: ir.Operation) -> bool:
    return "initial_value" in table.attributes and not isinstance(
        table.attributes["initial_value"], ir.UnitAttr
    )


@cache
def _steps() -> tuple[Any, ...]:
    """One after the other; a string is one of MLIR's."""
    return NORMALISE.passes()


@dataclass(frozen=True)
class Normalise:
    """Run the steps that the catalogue lists, each verified.

    before:  %s = scf.for %i … : i32 iter_args(%sum = %zero) -> f64 { … }
    after:   memref.store %zero, %sum[]
             scf.for %i … { %old = memref.load %sum[] …  memref.store %next, %sum[] }

    VerifyError where the sizes that are known now leave no room for a window.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for step in _steps():
                try:
                    if isinstance(step, str):
                        _run(module, step)
                    else:
                        step(module)
                        module.verify()
                except ir.MLIRError as error:
                    _refuse_outside(error)
                    raise
            refuse_divisors(module)  # by what only now is a number

    def __str__(self) -> str:
        return "normalise"


def _refuse_outside(error: ir.MLIRError) -> None:
    """VerifyError where it is a window that leaves its array, which the text is to blame for:
    MLIR's canonicalize writes sizes into its type once they are numbers.
    """
    for told in error.error_diagnostics:
        if "out-of-bounds" in told.message:
            raise VerifyError(
                f"a subview is out of bounds: {told.message}",
                span=span_of(told.location),
                hint="make the array longer, or the subview smaller",
            ) from None


def _run(module: ir.Operation, name: str) -> None:
    manager = passmanager.PassManager("builtin.module")
    manager.add(spelled(name))
    manager.run(module)
