"""Numbers a program works with that have no value yet.

Function without a binding -> a symbol for every such number: its own arguments, and what is
computed between tasks in a way no linear form follows. They are the same numbers in every task, so
windows that begin at %k and at %k + 50 can be told apart whatever %k will be.
"""

from __future__ import annotations

from mlir import ir

from avial_lab.compiler.analysis.accesses.buffers import argument_name, fresh_name
from avial_lab.compiler.analysis.accesses.index_forms import IndexForms
from avial_lab.compiler.analysis.accesses.linear import Linear, symbol
from avial_lab.compiler.ir.locations import name_of
from avial_lab.compiler.ir.program import schedule_operations, top_operations


def unbound_numbers(function: ir.Operation) -> dict[ir.Value, Linear]:
    """The function's numbers without a value, each as a symbol of its own name."""
    symbols: dict[ir.Value, Linear] = {}
    forms = IndexForms()
    taken: set[str] = set()

    def enter(value: ir.Value, name: str | None) -> None:
        unique = fresh_name(name or "number", taken)
        taken.add(unique)
        symbols[value] = forms[value] = symbol(unique)

    arg_attrs = function.attributes.get("arg_attrs")
    for k, argument in enumerate(function.regions[0].blocks[0].arguments):
        if _is_number(argument):
            enter(argument, argument_name(arg_attrs, k) or name_of(argument.location))
    for op in (*top_operations(function), *schedule_operations(function)):
        for result in op.results:
            if _is_number(result) and forms.of(result).split()[1].bounds() is None:
                enter(result, name_of(op.location))
    return symbols


def _is_number(value: ir.Value) -> bool:
    return isinstance(value.type, ir.IndexType | ir.IntegerType)
