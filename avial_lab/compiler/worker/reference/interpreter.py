"""The truth: the program in program order, in one process, without MPI, by a way of its own.

Module as it was read, arrays -> the arrays afterwards, and the first access outside an array, the
assertion that does not hold, or the signal that ended it (in a process of its own: `apart`).

It shares no rewrite with the run, so that it cannot be wrong in the same way:

    text ─► parsed anew ─► which arithmetic ─► definitions ─► LLVM's dialect ─► machine code

Nothing is canonicalised, folded by a pass, normalised, moved or made fast. Tensors are fresh memory
for each result (`fresh_tensors`), linear algebra and affine operations are written out as loops and
arithmetic by modules of this folder, and so are the divisions that MLIR's own code has wrong.

What is shared, and why that is no witness to itself:

- Reading: the text's notation, and which function, arrays and numbers are meant. It changes no
  operation.
- Which arithmetic (`contract-fma`, `select-math`, `expand-math`): which products are rounded with
  their sums, and which code a sine is, are promises about bits, not ways to compute them. That
  the first keeps its promise is tested against exact fractions, the last against many digits.
- Plain conversions of MLIR (scf to jumps; arith, math, vector, complex, memref to LLVM's dialect)
  and LLVM's code generator; none of LLVM's passes on its IR. Where one is known to be wrong, a
  definition of ours stands before it.
- What makes a program loadable (`bools-to-bytes`, `reset-globals`, `free-allocations`, marks for
  the journal), and GPU kernels as loops (`emulate-gpu`).
"""

from __future__ import annotations

import ctypes
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from mlir import ir
from mlir.dialects import func, llvm

from avial_lab.compiler.analysis.accesses.buffers import argument_name
from avial_lab.compiler.backends.llvm import unoptimised
from avial_lab.compiler.catalogue import DEFINITIONS, SEQUENTIAL
from avial_lab.compiler.codegen.gpu_prints import PRINT
from avial_lab.compiler.ir.locations import name_of
from avial_lab.compiler.ir.operations import operations_named
from avial_lab.compiler.ir.program import is_plain, is_structured, program_function, symbol_of
from avial_lab.compiler.lowering.arithmetic import arithmetic
from avial_lab.compiler.lowering.pipelines import TO_LLVM
from avial_lab.compiler.lowering.run import Pass, check_lowered, run_passes
from avial_lab.compiler.passes.tasks.check_bounds import Site, sites_of
from avial_lab.compiler.worker.reference.apart import call_apart, shared_zeros
from avial_lab.compiler.worker.reference.assertions import record_assertions
from avial_lab.core.buffers import Buffer, Storage
from avial_lab.core.errors import CellSpan
from avial_lab.core.runtime_constants import ASSERTED


@dataclass(frozen=True)
class Violation:
    """An access outside its array, or an assertion that does not hold: where in the cell, and what
    it was, or its text.
    """

    span: CellSpan | None
    message: str
    asserted: bool = False


@dataclass(frozen=True)
class ReferenceResult:
    """Every storage's values after the program, under its name; `seconds` is the run alone, not the
    compiling. `ended` says what ended it before its end: `killed by SIGFPE`.
    """

    data: dict[str, np.ndarray]
    violations: tuple[Violation, ...]
    seconds: float
    ended: str = ""


def reference(
    module: ir.Module | ir.Operation,
    buffers: Sequence[Buffer],
    storages: Sequence[Storage],
    data: Mapping[str, np.ndarray],
    *,
    bounds_checks: bool = True,
    strict: bool = False,
    journal: ctypes.c_int64 | None = None,
) -> ReferenceResult:
    """Run `module` task by task in program order, or its plain function from begin to end; a
    program of replicates and converges as if it were one.

    `data` holds the values of each storage before the run, by the storage's name, in the storage's
    shape (bytes where several buffers share it); a storage that is missing, as a temporary one is,
    starts at zero. `journal` holds the number of the task that runs, -1 before the first. With
    `bounds_checks`, the program ends at the first access outside an array, which is reported.

    The arithmetic is that of a run with the same `strict`, and nothing but the program's order: no
    sum is taken apart here, whatever a run may do.
    """
    work = module.operation.clone().operation
    known = {buffer.name: buffer for buffer in buffers}
    descriptors_of = [known[name] for name in _array_names(work)]
    lower(work, bounds_checks=bounds_checks, strict=strict)
    sites = sites_of(work)
    code = unoptimised(llvm.translate_module_to_llvmir(work))
    result = {
        storage.name: _values(storage, known[storage.buffers[0]], data.get(storage.name))
        for storage in storages
    }
    with _loaded(code) as library:
        record = shared_zeros((5,), np.dtype(np.int64))
        step = ctypes.c_int64(-1) if journal is None else journal
        _set_pointer(library, "avial_journal", step)
        _set_pointer(library, "avial_bounds", ctypes.c_int64.from_buffer(record.data))
        descriptors = [
            _Descriptor.of_buffer(result[buffer.storage], buffer) for buffer in descriptors_of
        ]
        entry = library[_ENTRY]
        entry.restype = None
        arguments = [ctypes.byref(descriptor.fields) for descriptor in descriptors]

        def timed() -> None:
            started = time.perf_counter_ns()
            entry(*arguments)
            record[_NANOSECONDS] = time.perf_counter_ns() - started

        ended = call_apart(timed)
    seconds = float(record[_NANOSECONDS]) * 1e-9
    return ReferenceResult(result, _violations(record, sites), seconds, ended)


_NANOSECONDS = 4
"""Its place in the record, behind what `avial.outside` writes."""


def lower(module: ir.Operation, *, bounds_checks: bool, strict: bool) -> None:
    """From the module as it was read down to LLVM's dialect, in place."""
    structured = is_structured(module)
    tasks = not structured and not is_plain(module)
    generic, *rest = in_order(tasks=tasks, structured=structured)
    run_passes(module, (generic, *arithmetic(strict=strict), *rest))
    if not tasks:
        _write_entry(module)
    for op in operations_named(module, PRINT):
        op.erase()  # that is for the run to do
    run_passes(module, definitions(bounds_checks=bounds_checks))
    record_assertions(module)
    run_passes(module, TO_LLVM)
    check_lowered(module)
    _end_at_first(module)


_ENTRY = "_mlir_ciface_main"


def _end_at_first(module: ir.Operation) -> None:
    """The program ends at the first access outside an array, or assertion that does not hold: a
    loop that waits for what is no longer computed, or goes on for days, would not. (What was
    allocated until then is lost.)

    before:  llvm.func @_mlir_ciface_main(%a: !llvm.ptr) {…}
    after:   llvm.func @program(%a: !llvm.ptr) {…}
             llvm.func @_mlir_ciface_main(%a) { if (_setjmp(@avial.resume) == 0) call @program(%a) }
    """
    tops = [view.operation for view in module.regions[0].blocks[0].operations]
    symbols = {ir.StringAttr(op.attributes["sym_name"]).value: op for op in tops}
    if "avial.outside" not in symbols:
        return
    symbols[_ENTRY].attributes["sym_name"] = ir.StringAttr.get("avial.program", module.context)
    count = len(symbols[_ENTRY].regions[0].blocks[0].arguments)
    names = ", ".join(f"%a{k}" for k in range(count))
    typed = ", ".join(f"%a{k}: !llvm.ptr" for k in range(count))
    kinds = ", ".join(["!llvm.ptr"] * count)
    text = f"""
      llvm.mlir.global external @avial.resume() : !llvm.array<128 x i64>
      llvm.func @avial.program({kinds})
      llvm.func @_setjmp(!llvm.ptr) -> i32 attributes {{passthrough = ["returns_twice"]}}
      llvm.func @{_ENTRY}({typed}) {{
        %resume = llvm.mlir.addressof @avial.resume : !llvm.ptr
        %again = llvm.call @_setjmp(%resume) : (!llvm.ptr) -> i32
        %zero = llvm.mlir.constant(0 : i32) : i32
        %first = llvm.icmp "eq" %again, %zero : i32
        llvm.cond_br %first, ^run, ^done
      ^run:
        llvm.call @avial.program({names}) : ({kinds}) -> ()
        llvm.br ^done
      ^done:
        llvm.return
      }}"""
    added = ir.Module.parse(text, module.context).body.operations
    for view in list(added)[2:]:
        view.operation.clone(ip=ir.InsertionPoint(module.regions[0].blocks[0]))


def in_order(*, tasks: bool, structured: bool) -> tuple[Pass, ...]:
    """What makes a program of tasks, or of replicates and converges, one sequence."""
    return SEQUENTIAL.passes(
        {
            "converge-to-loops": {} if structured else None,
            "unwrap-tasks": {} if structured else None,
            "task-steps": {} if tasks else None,
        }
    )


def definitions(*, bounds_checks: bool) -> tuple[Pass | str, ...]:
    return DEFINITIONS.passes(
        {
            "check-bounds": {} if bounds_checks else None,
            "ieee-min-max": {"machine": ""},  # LLVM's own operation on every machine
        }
    )


def _array_names(module: ir.Operation) -> list[str]:
    """The names of the program's arrays, in the order of its arguments."""
    function = program_function(module)
    attributes = function.attributes.get("arg_attrs")
    return [
        argument_name(attributes, k) or name_of(argument.location) or f"arg{k}"
        for k, argument in enumerate(function.regions[0].blocks[0].arguments)
    ]


def _write_entry(module: ir.Operation) -> None:
    """`@main`, which runs the plain function as its one step.

    before:  func.func @f(%a: memref<20xi32>) {…}
    after:   func.func @f(%a: memref<20xi32>) {…}
             func.func @main(%a: memref<20xi32>) attributes {avial.ranks = 1} {
               call @f(%a) {avial.step = 0}  return }
    """
    function = program_function(module)
    with module.context, function.location:
        name = symbol_of(function)
        if name == "main":
            name = "the program"
            function.attributes["sym_name"] = ir.StringAttr.get(name)
        types = [argument.type for argument in function.regions[0].blocks[0].arguments]
        with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
            entry = func.FuncOp("main", (types, []))
        entry.attributes["avial.ranks"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1)
        with ir.InsertionPoint(entry.add_entry_block()):
            call = func.CallOp([], name, list(entry.arguments))
            step = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)
            call.operation.attributes["avial.step"] = step
            func.ReturnOp([])


def _values(storage: Storage, first: Buffer, given: np.ndarray | None) -> np.ndarray:
    """A copy of the storage's values, in row-major order, that the process of the run shares."""
    if given is None:
        dtype = np.dtype(np.uint8) if storage.shared else np.dtype(f"V{first.itemsize}")
        return shared_zeros(storage.shape, dtype)
    values = shared_zeros(storage.shape, given.dtype)
    values[...] = given.reshape(storage.shape)
    return values


def _violations(record: np.ndarray, sites: Sequence[Site]) -> tuple[Violation, ...]:
    number, dimension, index, size, _ = record.tolist()
    if number == 0:
        return ()
    site = sites[number - 1]
    if dimension == ASSERTED:
        return (Violation(site.span, site.text, asserted=True),)
    message = (
        f"{site.text}: index {index} is out of bounds for dimension {dimension} of size {size}"
    )
    return (Violation(site.span, message),)


class _Descriptor:
    """What MLIR's C interface takes for an array: pointers, offset, sizes, strides (in
    elements).
    """

    def __init__(
        self,
        memory: np.ndarray,
        address: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        *,
        offset: int = 0,
    ) -> None:
        rank = len(shape)
        words = (ctypes.c_int64 * (3 + 2 * rank))()
        words[0] = words[1] = address
        words[2] = offset
        words[3 : 3 + rank] = shape
        words[3 + rank :] = strides
        self.memory = memory  # keeps it
        self.fields = words

    @staticmethod
    def of_buffer(memory: np.ndarray, buffer: Buffer) -> _Descriptor:
        """One array, inside the memory of its storage; as `buffer_type` has it, offsets count
        from its lowest element.
        """
        offset = buffer.before_first
        lowest = memory.ctypes.data + buffer.offset_bytes - offset * buffer.itemsize
        return _Descriptor(memory, lowest, buffer.shape, buffer.strides, offset=offset)


@contextmanager
def _loaded(shared_object: bytes) -> Iterator[ctypes.CDLL]:
    """The library, in a file of its own that goes at once: two programs never share one by its
    name.
    """
    with tempfile.TemporaryDirectory(prefix="avial-reference-") as folder:
        path = Path(folder) / "program.so"
        path.write_bytes(shared_object)
        library = ctypes.CDLL(str(path))
    try:
        yield library
    finally:
        _unload(library)


def _unload(library: ctypes.CDLL) -> None:
    close = ctypes.CDLL(None).dlclose
    close.argtypes = [ctypes.c_void_p]
    close(library._handle)


def _set_pointer(library: ctypes.CDLL, name: str, target: object) -> None:
    slot = ctypes.c_void_p.in_dll(library, name)
    slot.value = ctypes.addressof(target)  # type: ignore[arg-type]
