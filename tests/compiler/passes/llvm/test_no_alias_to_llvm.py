"""Of functions that are marked, all pointers and nothing else are told to be no aliases."""

from __future__ import annotations

from itertools import product

import pytest
from mlir import ir

from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.llvm.no_alias_to_llvm import NoAliasToLlvm

POINTER = "!llvm.ptr"


@pytest.mark.parametrize("kinds", list(product([POINTER, "i64", "f32"], repeat=3)))
@pytest.mark.parametrize("mark", ["", " attributes {avial.no_alias}"])
def test_which_arguments(kinds: tuple[str, ...], mark: str) -> None:
    arguments = ", ".join(f"%a{k}: {kind}" for k, kind in enumerate(kinds))
    text = f"llvm.func @f({arguments}){mark} {{\n  llvm.return\n}}"
    with ir.Context():
        module = ir.Module.parse(text)
        run_passes(module.operation, (NoAliasToLlvm(),))
        line = str(module).splitlines()[1]
    assert line.count("llvm.noalias") == (kinds.count(POINTER) if mark else 0)
    assert "i64 {" not in line
    assert "f32 {" not in line
