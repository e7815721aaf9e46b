"""What is embedded is what was given, with its end; other texts stay."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlir import ir

from avial_lab.compiler.passes.llvm.embed_kernels import EmbedKernels

TEXT = """
llvm.mlir.global private constant @S1_kernel.image("\\00") : !llvm.array<1 x i8>
llvm.mlir.global private constant @S2_kernel.image("\\00") : !llvm.array<1 x i8>
llvm.mlir.global private constant @S1_kernel.name("S1_kernel\\00") : !llvm.array<10 x i8>
"""


def values_after(each: EmbedKernels) -> list[str]:
    with ir.Context():
        module = ir.Module.parse(TEXT)
        each(module.operation)
        assert module.operation.verify()
        return [ir.StringAttr(op.attributes["value"]).value for op in module.body.operations]


def test_images_by_the_kernels_names() -> None:
    images = {"S1_kernel": 'quote " and é\n', "S1_kernel.name": "no"}
    assert values_after(EmbedKernels(images)) == ['quote " and é\n\0', "\0", "S1_kernel\0"]


def test_images_in_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ptx:S2_kernel.ptx").write_text(".version 6.0")
    assert values_after(EmbedKernels()) == ["\0", ".version 6.0\0", "S1_kernel\0"]
