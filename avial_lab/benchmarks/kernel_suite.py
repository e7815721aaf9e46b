"""The compute kernels of this repository as programs: `kernels/gemm`, or just `gemm`.

Name or folder, sizes -> text, function, inputs; a run's arrays -> how far they are from the NumPy
truth. The kernels stand beside the package in the repository and are not installed with it.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from avial_lab.compiler.requests import Scalar
from avial_lab.core.element_types import dtype_of_element
from avial_lab.core.errors import BindError, CheckError
from avial_lab.core.words import brief

POLYBENCH = (
    "2mm", "3mm", "adi", "atax", "bicg", "cholesky", "correlation", "covariance", "deriche",
    "doitgen", "durbin", "fdtd-2d", "floyd-warshall", "gemm", "gemver", "gesummv", "gramschmidt",
    "heat-3d", "jacobi-1d", "jacobi-2d", "lu", "ludcmp", "mvt", "nussinov", "seidel-2d", "symm",
    "syr2k", "syrk", "trisolv", "trmm",
)  # fmt: skip
"""The thirty kernels of PolyBench 4.2; the others here come from elsewhere."""

SIZES = ("MINI", "SMALL", "MEDIUM", "LARGE", "EXTRALARGE")
"""PolyBench's data sizes."""

_FOLDER = Path(__file__).parents[2] / "kernels"


class Kernel(Protocol):
    """What `kernels/kernel.py` calls a kernel, as far as it is needed here."""

    name: str
    function: str
    elements: tuple[str, ...]
    outputs: tuple[str, ...]
    arguments: Mapping[str, Any]
    datasets: Mapping[Any, Mapping[str, int]]

    def mlir(self, element: str, sizes: Mapping[str, int]) -> str: ...
    def inputs(
        self, sizes: Mapping[str, int], dtype: np.dtype[Any], rng: np.random.Generator
    ) -> dict[str, Any]: ...
    def truth(self, arguments: Mapping[str, Any]) -> dict[str, np.ndarray]: ...
    def bound(self, arguments: Mapping[str, Any]) -> dict[str, np.ndarray]: ...


@dataclass(frozen=True)
class KernelProgram:
    """A kernel at one size, with random inputs; `arrays` are written by a run.

    `before`: the arguments as they were. `note`: what was chosen, in one line. `element` is MLIR's
    type.
    """

    kernel: Kernel
    text: str
    arrays: dict[str, np.ndarray]
    scalars: dict[str, Scalar]
    before: dict[str, Any]
    note: str
    element: str
    sizes: Mapping[str, int]

    @property
    def function(self) -> str:
        return self.kernel.function

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
        return brief(self, f"{self.kernel.name} of {self.element}, {sizes}")

    def replace(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take these arrays for those made up. Raises BindError where they do not fit."""
        for name, array in arrays.items():
            if name not in self.arrays:
                known = ", ".join(self.arrays)
                raise BindError(f"{self.kernel.name} has no array {name}", hint=f"it has {known}")
            mine = self.arrays[name]
            if (array.shape, array.dtype) != (mine.shape, mine.dtype):
                raise BindError(
                    f"{name} of {self.kernel.name} has shape {mine.shape} and holds {mine.dtype}, "
                    f"not {array.shape} and {array.dtype}",
                    hint="sizes are given by --size and -D",
                )
            self.arrays[name] = array
            self.before[name] = array.copy()

    def compare(self, arrays: Mapping[str, np.ndarray]) -> str:
        """Say how far `arrays` are from the kernel's NumPy truth; CheckError where an element is
        farther than two correct runs may be apart.
        """
        truth, bounds = self.kernel.truth(self.before), self.kernel.bound(self.before)
        for name in self.kernel.outputs:
            _compare(name, arrays[name], truth[name], bounds[name])
        listed = ", ".join(self.kernel.outputs)
        return f"equal to NumPy, within the bound of its roundings ({listed})"


def is_kernel(program: str | Path) -> bool:
    """Whether that is a kernel's folder, or a kernel's name where no file is called so."""
    path = Path(program)
    if path.is_dir():
        return (path / "kernel.mlir").is_file()
    return not path.exists() and not path.suffix and path.parent in (Path(), Path("kernels"))


def element_of(name: str, wanted: Sequence[str]) -> str | None:
    """The first of `wanted` that the kernel has a version of; None where it has none of them."""
    own = kernel_program(name, size="MINI").kernel.elements
    return next((each for each in wanted if each in own), None)


def kernel_program(
    program: str | Path,
    *,
    size: str = "SMALL",
    element: str | None = None,
    numbers: Mapping[str, Scalar] | None = None,
    seed: int = 0,
) -> KernelProgram:
    """The kernel with inputs of its own; `numbers` replace its sizes and its scalar arguments.

    Raises BindError for a name that is none, and where the kernels are not there.
    """
    path = Path(program)
    kernel = _load(path.resolve() if path.is_dir() else _FOLDER / path.name)
    chosen = element or kernel.elements[0]
    if chosen not in kernel.elements:
        raise BindError(
            f"{kernel.name} has no {chosen} version",
            hint=f"there are {', '.join(kernel.elements)}",
        )
    sizes = dict(next(row for which, row in kernel.datasets.items() if which.name == size.upper()))
    scalars: dict[str, Scalar] = {}
    for name, value in (numbers or {}).items():
        _place(kernel, name, value, sizes, scalars)
    if any(value < 1 for value in sizes.values()):
        raise BindError(f"the sizes of {kernel.name} are at least 1, not {sizes}")
    rng = np.random.default_rng(seed)
    before = kernel.inputs(sizes, dtype_of_element(chosen), rng)
    for name, value in scalars.items():
        before[name] = before[name].dtype.type(value)
    arrays = {k: v.copy() for k, v in before.items() if isinstance(v, np.ndarray)}
    given = {k: v.item() for k, v in before.items() if not isinstance(v, np.ndarray)}
    shown = ", ".join(f"{name} = {value}" for name, value in sizes.items())
    note = f"{kernel.name}: {shown}, {chosen}, random inputs, seed {seed}"
    text = kernel.mlir(chosen, sizes)
    return KernelProgram(kernel, text, arrays, given, before, note, chosen, sizes)


def kernel_names(folder: Path = _FOLDER) -> tuple[str, ...]:
    """The kernels there are, by default beside this package."""
    return tuple(sorted(path.parent.name for path in folder.glob("*/kernel.mlir")))


def kernel_sentences(folder: Path = _FOLDER) -> dict[str, str]:
    """What each kernel computes: the first sentence of its module, which is not run for that."""
    return {name: _sentence(folder / name / "kernel.py") for name in kernel_names(folder)}


def _sentence(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    sentence = re.match(r".*?\.(?= [A-Z]|$)", paragraph)
    return sentence[0] if sentence else paragraph


def _place(
    kernel: Kernel, name: str, value: Scalar, sizes: dict[str, int], scalars: dict[str, Scalar]
) -> None:
    """A number is a size, in any case of letters, or a scalar argument."""
    known = {key.lower(): key for key in sizes}
    numbers = [key for key, item in kernel.arguments.items() if not hasattr(item, "extents")]
    if name in numbers and name.lower() not in known:
        scalars[name] = value
    elif name.lower() in known:
        if not isinstance(value, int):
            raise BindError(f"{name}={value} is no size", hint="sizes are whole numbers")
        sizes[known[name.lower()]] = value
    else:
        near = get_close_matches(name, [*sizes, *numbers], n=1)
        hint = f"did you mean {near[0]}?" if near else f"it has {', '.join([*sizes, *numbers])}"
        raise BindError(f"{kernel.name} has no number {name}", hint=hint)


def _load(folder: Path) -> Kernel:
    """What `folder/kernel.py` declares."""
    root = folder.parent
    if not (root / "__init__.py").is_file() or not (root / "kernel.py").is_file():
        raise BindError(
            f"there is no folder {root} of kernels",
            hint="kernels come with the repository, not with the installed package",
        )
    if folder.name not in kernel_names(root):
        near = get_close_matches(folder.name, kernel_names(root), n=1)
        raise BindError(
            f"there is no file and no kernel '{folder.name}'",
            hint=f"did you mean {near[0]}?"
            if near
            else f"there are {', '.join(kernel_names(root))}",
        )
    if str(root.parent) not in sys.path:
        sys.path.append(str(root.parent))
    return importlib.import_module(root.name).load(folder.name)


def _compare(name: str, got: np.ndarray, want: np.ndarray, bound: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        exact = (got == want) | (np.isnan(got) & np.isnan(want))
        wrong = np.flatnonzero(~(exact | (np.abs(got - want) <= bound)))
    if wrong.size:
        index = tuple(int(k) for k in np.unravel_index(wrong[0], got.shape))
        raise CheckError(
            f"the run differs from NumPy in {wrong.size} of {got.size} elements of '{name}', "
            f"first at {list(index)}: {got[index]} instead of {want[index]} ± {bound[index]:.2g}"
        )
