"""The cases of golden files as programs that run: what they compute before and after a pass.

Name of a golden file, and of a case -> its text; text and passes -> arrays and a result.

A case that is no plain function (of tasks, phases, ranks) is made one by `unwrap-tasks`, which is
its sequential meaning.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlir import ir
from mlir.dialects import affine
from mlir.execution_engine import ExecutionEngine

from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.lowering.opt import parse_passes
from avial_lab.compiler.lowering.pipelines import TO_LLVM
from avial_lab.compiler.lowering.run import Pass, check_lowered, run_passes
from avial_lab.compiler.passes.host.copies_to_loops import CopiesToLoops
from avial_lab.compiler.passes.host.free_allocations import FreeAllocations
from avial_lab.compiler.passes.host.ieee_min_max import IeeeMinMax
from avial_lab.compiler.passes.llvm.independent_to_llvm import IndependentToLlvm, KeepIndependent
from avial_lab.compiler.passes.llvm.no_alias_to_llvm import NoAliasToLlvm
from avial_lab.compiler.passes.tasks.unwrap_tasks import UnwrapTasks
from tests.kernels.jit import OPT_LEVEL, Guarded

OPTIMISED = 2
"""LLVM's level where a test asks what LLVM makes of our words, above all of those on aliases."""

OPEN = 9
"""The extent of a dimension that a case leaves open, and the value of its integers."""

KINDS: dict[str, type[np.generic]] = {
    "f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "index": np.int64,
    "i8": np.int8, "i1": np.bool_,
}  # fmt: skip


def cases_of(name: str, *, private: bool = False) -> dict[str, str]:
    """The cases of `<name>.mlir` by the names of their programs, which are `private` functions or
    are not; but for those that are refused.
    """
    text = next(Path(__file__).parent.rglob(f"{name}.mlir")).read_text()
    found: dict[str, str] = {}
    for case in text.split("// -----\n"):
        program = re.search(rf"^ *func\.func {'private ' * private}@(\w+)", case, re.M)
        if program is not None and "// REFUSED" not in case:
            found[program.group(1)] = case
    return found


def each_case(name: str, *, without: Sequence[str] = ()) -> pytest.MarkDecorator:
    """A test for each of those cases; `without` those that do not compute, or not on any values."""
    cases = cases_of(name)
    assert set(without) <= set(cases), "there is no such case"
    kept = [pytest.param(text, id=case) for case, text in cases.items() if case not in without]
    return pytest.mark.parametrize("case", kept)


def assert_same(
    text: str,
    passes: str,
    *,
    then: Sequence[Pass | str] = (),
    given: Mapping[int, Any] | None = None,
    rtol: float = 0,
    opt_level: int = OPT_LEVEL,
) -> list[np.ndarray]:
    """The program in `text` computes the same as it is, and after `passes` and what comes `then`,
    which is returned: the same bits, or within `rtol`. `given` are arguments in place of random
    ones; `opt_level` is LLVM's.
    """
    want = computed(text, (), given=given)
    after = (*parse_passes(passes), *then)
    got = loaded(text, after, given=given, opt_level=opt_level)()
    assert want, "nothing is computed"
    for expected, found in zip(want, got, strict=True):
        if rtol:
            np.testing.assert_allclose(found, expected, rtol=rtol)
        else:
            assert found.tobytes() == expected.tobytes()
    return got


def computed(
    text: str, passes: Sequence[Pass | str], *, given: Mapping[int, Any] | None = None
) -> list[np.ndarray]:
    """All arrays of the program after it ran, and its result, if it has one."""
    return loaded(text, passes, given=given)()


def loaded(
    text: str,
    passes: Sequence[Pass | str],
    *,
    given: Mapping[int, Any] | None = None,
    opt_level: int = OPT_LEVEL,
) -> Callable[[], list[np.ndarray]]:
    """The program, compiled: it can be run again and again, each time on the same arrays."""
    context = ir.Context()
    register(context)
    with context, ir.Location.unknown():
        module = ir.Module.parse(text)
        symbol, kind = _entry(module)
        arguments = [
            (given or {}).get(k, _argument(each, np.random.default_rng(k)))
            for k, each in enumerate(kind.inputs)
        ]
        results = [KINDS[str(each)](0) for each in kind.results]
        run_passes(module.operation, passes)
        if any(op.name == "avial.schedule" for op in operations_in(module.operation)):
            run_passes(module.operation, (UnwrapTasks(),))
        run_passes(module.operation, TO_RUN)
        check_lowered(module.operation)
        engine = ExecutionEngine(module, opt_level=opt_level)

    def run() -> list[np.ndarray]:
        arrays = [Guarded(each) if isinstance(each, np.ndarray) else None for each in arguments]
        pointers = [
            _pointer(each) if array is None else array.pointer()
            for each, array in zip(arguments, arrays, strict=True)
        ]
        handed_out = [_pointer(each) for each in results]
        engine.invoke(symbol, *pointers, *handed_out)
        values = [np.array([each.contents.value]) for each in handed_out]
        checked = (each.checked(str(k)) for k, each in enumerate(arrays) if each is not None)
        return [*checked, *values]

    return run


TO_RUN: tuple[Pass | str, ...] = (
    CopiesToLoops(), FreeAllocations(), KeepIndependent(), "convert-linalg-to-loops",
    "lower-affine", IeeeMinMax(), *TO_LLVM, NoAliasToLlvm(), IndependentToLlvm(),
)  # fmt: skip


def _entry(module: ir.Module) -> tuple[str, ir.FunctionType]:
    """The program's name and type; it is to be called from here."""
    programs = (op for op in operations_in(module.operation) if op.name == "func.func")
    program = next(op for op in programs if "sym_visibility" not in op.attributes)
    program.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
    kind = ir.FunctionType(ir.TypeAttr(program.attributes["function_type"]).value)
    return ir.StringAttr(program.attributes["sym_name"]).value, kind


def _pointer(scalar: np.generic) -> Any:
    dtype: Any = scalar.dtype
    kind = np.ctypeslib.as_ctypes_type(dtype)
    return ctypes.pointer(kind(scalar.item()))


def _argument(kind: ir.Type, rng: np.random.Generator) -> np.ndarray | np.generic:
    if isinstance(kind, ir.MemRefType):
        dynamic = ir.ShapedType.get_dynamic_size()
        shape = tuple(OPEN if extent == dynamic else extent for extent in kind.shape)
        dtype = np.dtype(KINDS[str(kind.element_type)])
        if dtype.kind == "f":
            return rng.uniform(-1, 1, shape).astype(dtype)
        return rng.integers(0, 5, shape).astype(dtype)
    dtype = KINDS[str(kind)]
    return dtype(rng.uniform(0.5, 1) if np.dtype(dtype).kind == "f" else OPEN)


@dataclass(frozen=True)
class Backwards:
    """Run loops with that mark from their last iteration to their first: whose iterations may run
    at once, or in any order, compute the same.

    before:  affine.for %i = 2 to 9 { A[%i] } {avial.parallel}
    after:   affine.for %k = 2 to 9 { %i = affine.apply 10 - %k  A[%i] }
    """

    mark: str

    def __call__(self, module: ir.Operation) -> None:
        turned = 0
        with module.context:
            for loop in [op for op in operations_in(module) if self.mark in op.attributes]:
                ends = [ir.AffineMapAttr(loop.attributes[name]).value for name in BOUNDS]
                low, high = (ir.AffineConstantExpr(end.results[0]).value for end in ends)
                step = ir.IntegerAttr(loop.attributes["step"]).value
                last = low + (high - low - 1) // step * step
                block = loop.regions[0].blocks[0]
                form = ir.AffineMap.get(1, 0, [low + last - ir.AffineExpr.get_dim(0)])
                with ir.InsertionPoint.at_block_begin(block), loop.location:
                    place = affine.AffineApplyOp(form, [block.arguments[0]])
                block.arguments[0].replace_all_uses_except(place.result, place.operation)
                del loop.attributes[self.mark]
                turned += 1
        assert turned, "no loop is marked"


BOUNDS = ("lowerBoundMap", "upperBoundMap")
