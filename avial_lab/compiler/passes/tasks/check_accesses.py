"""Accesses that are certain to leave their array are errors before anything runs.

Module -> the same, or VerifyError with the access and the size.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.polyhedral.out_of_bounds import out_of_bounds
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.program import is_plain, program_function, scheduled_function
from avial_lab.compiler.ir.views import VIEWS
from avial_lab.core.errors import VerifyError


@dataclass(frozen=True)
class CheckAccesses:
    """Refuse `A[i + 1]` for i = 0 to 10 where A has 10 elements.

    An access through a view is to stay inside of the view, and of the array. What depends on data
    or on numbers without a value is not decided here; `--check` looks at it.
    """

    def __call__(self, module: ir.Operation) -> None:
        looked_at = _with_arrays_for_views(module)  # a copy lives no longer than its name
        found = out_of_bounds(read_scop(_program(looked_at)))
        if not found and looked_at != module:
            found = out_of_bounds(read_scop(_program(module)))
        if found:
            raise VerifyError(
                str(found[0]),
                span=found[0].span,
                hint="make the array longer, or the loop shorter",
            )

    def __str__(self) -> str:
        return "check-accesses"


def _program(module: ir.Operation) -> ir.Operation:
    function = program_function(module) if is_plain(module) else scheduled_function(module)
    return function.operation


def _with_arrays_for_views(module: ir.Operation) -> ir.Operation:
    """A copy with an allocation in place of each view whose extents are numbers: what leaves the
    view leaves the allocation. It is only read, never lowered. Without such views, `module`.
    """
    if not any(map(_is_sized_view, operations_in(module))):
        return module
    copy = module.clone().operation
    with copy.context:
        for op in list(filter(_is_sized_view, operations_in(copy))):
            with ir.InsertionPoint(op), op.location:
                array = ir.Operation.create("memref.alloc", [op.results[0].type])
            op.results[0].replace_all_uses_with(array.results[0])
    return copy


def _is_sized_view(op: ir.Operation) -> bool:
    return op.name in VIEWS and ir.ShapedType(op.results[0].type).has_static_shape
