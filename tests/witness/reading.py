"""Texts: read by MLIR, or from the short notation; their arguments bound to the caller's arrays."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from mlir import ir

from avial_lab.compiler.frontends.notation.programs import elaborate
from avial_lab.compiler.frontends.notation.source import Source
from avial_lab.compiler.ir.dialects import register
from avial_lab.core.buffers import bind_arrays
from tests.witness import (  # noqa: F401  they fill RULES
    affine,
    arith,
    control,
    elementary,
    memory,
    structured,
    tasks,
    tensors,
    vectors,
)
from tests.witness.machine import Machine
from tests.witness.memory import shape_of
from tests.witness.values import (
    Array,
    Unsupported,
    Value,
    WitnessError,
    element_of,
    from_numpy,
    is_shaped,
    to_numpy,
)
from tests.witness.views import fitting

_NAME = re.compile(r"%([\w$.-]+)\s*:")
_CALLED = re.compile(r"\bcall @([\w$.-]+)")


def interpret(
    text: str,
    arrays: Mapping[str, np.ndarray],
    scalars: Mapping[str, float] | None = None,
    *,
    function: str | None = None,
) -> dict[str, np.ndarray]:
    """What `arrays`, left as they are, hold after the program, and its results as result0, …: bound
    by name as `avial_lab.compile` binds them.
    """
    context = ir.Context()
    register(context)
    module, full = _module(text, context, arrays, scalars or {})
    machine = Machine(module)
    name = function or _public(full, machine)
    names = _argument_names(full, name)
    types = machine.function(name).types
    values = [_bound(n, t, arrays, scalars or {}) for n, t in zip(names, types, strict=True)]
    _check_apart(arrays)
    results = machine.call(name, *values)
    after = {
        n: to_numpy(v, element_of(t)).view(arrays[n].dtype)
        for n, t, v in zip(names, types, values, strict=True)
        if isinstance(v, Array)
    }
    return after | _results(machine.function(name).type.results, results, values)


def _module(
    text: str, context: ir.Context, arrays: Mapping[str, np.ndarray], scalars: Mapping[str, float]
) -> tuple[ir.Module, str]:
    """As MLIR reads it, if it does; else through the notation. Also the text that MLIR read."""
    with context:
        if "avial.schedule" not in text or '"avial.schedule"' in text:
            try:
                return ir.Module.parse(text), text
            except ir.MLIRError:
                pass
        read = elaborate(
            Source(text, "<witness>"), context, binding=bind_arrays(dict(arrays)), scalars=scalars
        )
        full = read.output.text
        return ir.Module.parse(full), full


def _public(text: str, machine: Machine) -> str:
    """The one function that no other calls."""
    called = set(_CALLED.findall(text))
    found = [
        name
        for name, op in machine.symbols.items()
        if op.name == "func.func"
        and len(op.regions[0].blocks)
        and "sym_visibility" not in op.attributes
    ]
    found = [name for name in found if name not in called] or found
    if len(found) != 1:
        raise WitnessError(f"which of {found}?")
    return found[0]


def _argument_names(text: str, function: str) -> list[str]:
    """From the head `func.func @f(%a: …, %b: …)`, which MLIR forgets; else a generic form's
    `^bb0(%a: … , …):` behind the function's name.
    """
    head = re.search(rf'func\.func[^\n{{]*@"?{re.escape(function)}"?\s*\(', text)
    if head is None:
        head = re.compile(r"\^\w+\(").search(text, text.index(f'"{function}"'))
    if head is None:
        return []
    depth, end = 1, head.end()
    while depth:
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return _NAME.findall(text[head.end() : end - 1])


def _bound(
    name: str, type_: ir.Type, arrays: Mapping[str, np.ndarray], scalars: Mapping[str, Any]
) -> Value:
    if not is_shaped(type_):
        return element_of(type_).read(scalars[name])
    return fitting(from_numpy(arrays[name], element_of(type_)), shape_of(type_))


def _check_apart(arrays: Mapping[str, np.ndarray]) -> None:
    for one, two in combinations(arrays.values(), 2):
        if np.shares_memory(one, two):
            raise Unsupported("arrays that share memory")


def _results(
    types: Sequence[ir.Type], results: Sequence[Value], given: Sequence[Value]
) -> dict[str, np.ndarray]:
    """A memref of the caller's that is handed back is no result."""
    memories = [id(value.memory) for value in given if isinstance(value, Array)]
    found: dict[str, np.ndarray] = {}
    for k, (type_, value) in enumerate(zip(types, results, strict=True)):
        array = value if isinstance(value, Array) else Array.of((), [value])
        if isinstance(type_, ir.MemRefType) and id(array.memory) in memories:
            continue
        found[f"result{k}"] = to_numpy(array, element_of(type_))
    return found
