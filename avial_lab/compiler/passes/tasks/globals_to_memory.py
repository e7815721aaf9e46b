"""Globals that kernels use are memory of the function that launches them.

Module with memref.get_global -> module whose launches use only arrays and what the function
allocates: that is what GPUs and ranks exchange.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import memref

from avial_lab.compiler.ir.effects import text_attribute
from avial_lab.compiler.ir.nesting import holds, parent_of
from avial_lab.compiler.ir.operations import operations_named
from avial_lab.compiler.ir.program import program_function
from avial_lab.compiler.ir.views import VIEWS


@dataclass(frozen=True)
class GlobalsToMemory:
    """Allocate it where the function begins, and give it the global's first values.

    before:  memref.global "private" @w : memref<2xf32> = dense<[1.0, 2.0]>
             func.func @f(%a) { … gpu.launch … { %w = memref.get_global @w … } }
    after:   memref.global "private" @w : memref<2xf32> = dense<[1.0, 2.0]>
             func.func @f(%a) { %first = memref.get_global @w  %w = memref.alloc()
               memref.copy %first, %w  … gpu.launch … { … %w … } }

    The function is called once a run, and every run begins with those values. A global that another
    function names too (its calls are not written out) stays one.
    """

    def __call__(self, module: ir.Operation) -> None:
        if not operations_named(module, "gpu.launch"):
            return
        used: dict[str, list[ir.Operation]] = {}
        for op in operations_named(module, "memref.get_global"):
            name = ir.FlatSymbolRefAttr(op.attributes["name"]).value
            used.setdefault(name, []).append(op)
        function = program_function(module)
        with module.context:
            for view in list(module.regions[0].blocks[0].operations):
                table = view.operation
                if table.name != "memref.global":
                    continue
                users = used.get(text_attribute(table, "sym_name"), [])
                launched = any(_is_in_launch(op) or _is_launched(op.results[0]) for op in users)
                if launched and all(holds(function, op) for op in users):
                    _allocate(table, users, function)

    def __str__(self) -> str:
        return "globals-to-memory"


def _is_in_launch(op: ir.Operation) -> bool:
    around = parent_of(op)
    while around is not None and around.name != "gpu.launch":
        around = parent_of(around)
    return around is not None


def _is_launched(memory: ir.Value) -> bool:
    """Whether a launch uses it, or a view of it."""
    users = [use.owner.operation for use in memory.uses]
    return any(
        _is_in_launch(user) or (user.name in VIEWS and any(map(_is_launched, user.results)))
        for user in users
    )


def _allocate(table: ir.Operation, users: list[ir.Operation], function: ir.Operation) -> None:
    kind = ir.TypeAttr(table.attributes["type"]).value
    values = table.attributes.get("initial_value")
    with (
        ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]),
        users[0].location,
    ):
        own = memref.alloc(kind, [], [])
        if values is not None and not isinstance(values, ir.UnitAttr):
            memref.copy(memref.get_global(kind, text_attribute(table, "sym_name")), own)
    for op in users:
        op.results[0].replace_all_uses_with(own)
        op.erase()
