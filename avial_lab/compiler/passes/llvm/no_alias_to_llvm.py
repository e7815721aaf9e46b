"""What is known of a function's arrays, in LLVM's words.

LLVM dialect -> the same, with `noalias` on the pointers of marked functions.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.ir.attributes import NO_ALIAS
from avial_lab.compiler.ir.operations import operations_named


@dataclass(frozen=True)
class NoAliasToLlvm:
    """Pointers that share no memory say so, and what is stored through one need not be loaded again
    through another.

    before:  llvm.func @S1(%0: !llvm.ptr, %1: !llvm.ptr, …) attributes {avial.no_alias}
    after:   llvm.func @S1(%0: !llvm.ptr {llvm.noalias}, %1: !llvm.ptr {llvm.noalias}, …)

    An array's two pointers, to its memory and to its first element, are marked alike: elements are
    reached through the second only.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for op in operations_named(module, "llvm.func"):
                if NO_ALIAS in op.attributes:
                    _mark(op)

    def __str__(self) -> str:
        return "no-alias-to-llvm"


def _mark(function: ir.Operation) -> None:
    del function.attributes[NO_ALIAS]
    pointer, fact = ir.Type.parse("!llvm.ptr"), ir.DictAttr.get({"llvm.noalias": ir.UnitAttr.get()})
    arguments = function.regions[0].blocks[0].arguments
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(
        [fact if argument.type == pointer else ir.DictAttr.get({}) for argument in arguments]
    )
