"""Tensors as fresh memory: every result of an operation lies in memory of its own.

Module on tensors -> the same on memrefs. Nothing is written in place and no analysis asked: what is
written is copied first (MLIR's one-shot-bufferize with its analysis off). Before that, every
operation of linear algebra is written out, so that all its operands count as read.
"""

from __future__ import annotations

from mlir import ir

from avial_lab.compiler.frontends.mlir.tensors import has_tensors, has_tosa, run_pipeline
from avial_lab.compiler.frontends.mlir.tosa_control import tosa_control_to_scf
from avial_lab.compiler.worker.reference.linalg_loops import NamedToGeneric

_TOSA = (
    "builtin.module(func.func(tosa-optional-decompositions,tosa-infer-shapes,tosa-to-scf,"
    "tosa-make-broadcastable,tosa-to-linalg-named,tosa-to-linalg,"
    "tosa-to-arith{include-apply-rescale},tosa-to-tensor))"
)

_ELEMENTWISE = "builtin.module(func.func(convert-elementwise-to-linalg))"

_BUFFERIZE = (
    "builtin.module(one-shot-bufferize{bufferize-function-boundaries "
    "allow-return-allocs-from-loops copy-before-write "
    "function-boundary-type-conversion=identity-layout-map})"
)


def tensors_to_fresh_memory(module: ir.Module) -> bool:
    """Whether there was a tensor; there is none any more. VerifyError as `tensors_to_memory`."""
    if not has_tensors(module):
        return False
    if has_tosa(module):
        tosa_control_to_scf(module.operation)
        run_pipeline(module, _TOSA, "an operation of tosa could not be lowered to loops")
    run_pipeline(module, _ELEMENTWISE, "an operation on tensors could not be lowered to loops")
    NamedToGeneric()(module.operation)
    run_pipeline(module, _BUFFERIZE, "a tensor could not be bufferized")
    return True
