"""The images of kernels in the program that launches them.

LLVM dialect with an empty image for each kernel, the images by the kernels' names -> filled in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mlir import ir

from avial_lab.artifact.kernels import images_in
from avial_lab.compiler.ir.effects import text_attribute
from avial_lab.compiler.ir.operations import operations_named

IMAGE = ".image"


@dataclass(frozen=True)
class EmbedKernels:
    r"""Put each image (PTX) where the launch of its kernel finds it; one that is missing stays
    empty, and the device says so when the kernel is to run. Without `images` they are in the files
    `ptx:NAME.ptx` beside.

    before:  llvm.mlir.global private constant @S1_kernel.image("\00") : !llvm.array<1 x i8>
    after:   llvm.mlir.global private constant @S1_kernel.image("…\00") : !llvm.array<2814 x i8>
    """

    images: Mapping[str, str] | None = None

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for op in operations_named(module, "llvm.mlir.global"):
                name = text_attribute(op, "sym_name")
                image = self._image(name.removesuffix(IMAGE)) if name.endswith(IMAGE) else ""
                if image:
                    text = image.encode() + b"\0"
                    op.attributes["value"] = ir.StringAttr.get(text)
                    kind = ir.Type.parse(f"!llvm.array<{len(text)} x i8>")
                    op.attributes["global_type"] = ir.TypeAttr.get(kind)

    def __str__(self) -> str:
        return "embed-kernels"

    def _image(self, kernel: str) -> str:
        images = self.images
        if images is None:
            images = images_in(
                path.read_text(encoding="utf-8") for path in sorted(Path().glob("ptx:*.ptx"))
            )
        return images.get(kernel, "")
