"""Every kernel: its MLIR computes what its truth does, and what it says of itself is so."""

from __future__ import annotations

import doctest
import re
import subprocess
from collections.abc import Iterator

import numpy as np
import pytest
from mlir import ir

import kernels
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.core.toolchain import tool
from kernels.kernel import ELEMENTS, Arguments, Array, Dataset, Kernel, Role, Scalar, Sizes
from tests.kernels.jit import Machine

POLYBENCH = {
    "2mm", "3mm", "adi", "atax", "bicg", "cholesky", "correlation", "covariance", "deriche",
    "doitgen", "durbin", "fdtd-2d", "floyd-warshall", "gemm", "gemver", "gesummv", "gramschmidt",
    "heat-3d", "jacobi-1d", "jacobi-2d", "lu", "ludcmp", "mvt", "nussinov", "seidel-2d", "symm",
    "syr2k", "syrk", "trisolv", "trmm",
}  # fmt: skip
OTHERS = {
    "black-scholes", "game-of-life", "histogram", "mlp", "n-body", "prefix-sum", "seidel-9pt",
    "spmv", "stencil-3d-27pt", "stencil-3d-7pt",
}  # fmt: skip

AWKWARD = ((7, 11, 5, 13, 3), (5, 3, 17, 2, 11), (1, 1, 1, 1, 1), (2, 4, 3, 1, 2))
"""Primes, another way round, ones, fewer than a stencil is wide: dealt to the sizes in order."""

KERNELS = [kernels.load(name) for name in kernels.names()]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=[k.name for k in KERNELS])


def awkward(kernel: Kernel) -> Iterator[dict[str, int]]:
    for numbers in AWKWARD:
        yield dict(zip(kernel.size_names, numbers, strict=False))


def inputs(kernel: Kernel, element: str, sizes: Sizes, *, seed: int = 0) -> Arguments:
    return kernel.inputs(sizes, ELEMENTS[element], np.random.default_rng(seed))


def same(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Bit for bit; a NaN is as good as another."""
    if got.dtype.kind != "f":
        return got == want
    bits = {4: np.uint32, 8: np.uint64}[got.itemsize]
    return (got.view(bits) == want.view(bits)) | (np.isnan(got) & np.isnan(want))


# -- what it computes ------------------------------------------------------------------------------


@every_kernel
def test_equals_its_truth(kernel: Kernel, context: ir.Context) -> None:
    static = {
        f"{element}_{number}": kernel.mlir(element, sizes)
        for element in kernel.elements
        for number, sizes in enumerate(awkward(kernel))
    }
    dynamic = {f"{element}_any": kernel.mlir(element) for element in kernel.elements}
    machine = Machine(list((static | dynamic).items()), context)
    for element in kernel.elements:
        for number, sizes in enumerate(awkward(kernel)):
            arguments = inputs(kernel, element, sizes, seed=number)
            truth = kernel.truth(arguments)
            bound = {} if kernel.exact else kernel.bound(arguments)
            for version in (f"{element}_{number}", f"{element}_any"):
                after = machine.call(version, arguments)
                for name, want in truth.items():
                    right = same(after[name], want)
                    if name in bound:
                        right |= np.abs(after[name] - want) <= bound[name]
                    wrong = np.argwhere(~right)
                    assert not len(wrong), (
                        f"{version} {sizes}: {name}{wrong[0].tolist()} "
                        f"is {after[name][tuple(wrong[0])]}, not {want[tuple(wrong[0])]}"
                    )


@every_kernel
def test_truth_is_within_the_bound_of_a_better_one(kernel: Kernel) -> None:
    """Single precision is as near to double precision as `bound` promises, and that is near."""
    if "f32" not in kernel.elements:
        pytest.skip("integers only: exact")
    sizes = kernel.datasets[Dataset.MINI]
    if kernel.name == "gramschmidt":
        sizes = {"M": 30, "N": 20}  # more rows than columns, else the last columns are noise
    single = inputs(kernel, "f32", sizes)
    double = {
        name: value.astype(np.float64) if value.dtype.kind == "f" else value
        for name, value in single.items()
    }
    truth, better, bound = kernel.truth(single), kernel.truth(double), kernel.bound(single)
    assert set(bound) == set(kernel.outputs)
    for name in kernel.outputs:
        written = ~np.isnan(better[name])
        off = np.abs(truth[name] - better[name])
        assert (off[written] <= bound[name][written]).all()
        scale = np.abs(better[name][written]).max(initial=1e-3)
        assert bound[name][written].max(initial=0) < 0.05 * scale


def test_bound_holds_for_any_order_of_a_sum() -> None:
    gemm = kernels.load("gemm")
    sizes = {"NI": 6, "NJ": 5, "NK": 400}
    arguments = inputs(gemm, "f32", sizes)
    c = arguments["beta"] * arguments["C"]
    blas = c + arguments["alpha"] * (arguments["A"] @ arguments["B"])
    order = np.random.default_rng(1).permutation(400)
    shuffled = gemm.truth(arguments | {"A": arguments["A"][:, order], "B": arguments["B"][order]})[
        "C"
    ]
    truth, bound = gemm.truth(arguments)["C"], gemm.bound(arguments)["C"]
    for other in (blas, shuffled):
        off = np.abs(other.astype(np.float64) - truth)
        assert off.any()
        assert (off <= bound).all()


# -- what it says of itself ------------------------------------------------------------------------


def test_they_are_all_there() -> None:
    assert set(kernels.names()) == POLYBENCH | OTHERS
    assert len(POLYBENCH) == 30


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(kernels.KernelError, match="unknown kernel 'gem'; did you mean 'gemm'"):
        kernels.load("gem")


def test_examples_in_the_docstring() -> None:
    assert doctest.testmod(kernels) == (0, 6)


def test_sizes_are_checked() -> None:
    gemm = kernels.load("gemm")
    with pytest.raises(ValueError, match="has the sizes"):
        gemm.mlir("f32", {"N": 4})
    with pytest.raises(ValueError, match="at least 1"):
        gemm.inputs({"NI": 0, "NJ": 1, "NK": 1}, np.float32, np.random.default_rng(0))
    with pytest.raises(ValueError, match="no i8 version"):
        gemm.mlir("i8")


@every_kernel
def test_arguments_are_the_functions(kernel: Kernel) -> None:
    sizes = next(awkward(kernel))
    for element in kernel.elements:
        text = kernel.mlir(element, sizes)
        head = re.search(rf"func\.func @{kernel.function}\(([^{{]*)\) {{", text)
        assert head is not None
        declared = re.findall(r"%(\w+): ([^,]+?)(?=,|$)", head[1])
        given = inputs(kernel, element, sizes)
        assert [name for name, _ in declared] == list(kernel.arguments) == list(given)
        for name, kind in declared:
            assert kind == _type(kernel.arguments[name], element, sizes), name
            assert "avial" not in text


def _type(argument: Array | Scalar, element: str, sizes: Sizes) -> str:
    element = argument.element or element
    if isinstance(argument, Scalar):
        return element
    return f"memref<{'x'.join(map(str, argument.shape(sizes)))}x{element}>"


@every_kernel
def test_inputs_are_random_and_outputs_poisoned(kernel: Kernel) -> None:
    sizes = kernel.datasets[Dataset.MINI]
    for element in kernel.elements:
        one, two = (
            kernel.inputs(sizes, ELEMENTS[element], np.random.default_rng(s)) for s in (1, 2)
        )
        for name, argument in kernel.arguments.items():
            if isinstance(argument, Scalar):
                continue
            assert one[name].shape == argument.shape(sizes)
            if argument.role in (Role.OUT, Role.SCRATCH):
                poison = np.nan if element.startswith("f") else np.iinfo(one[name].dtype).min
                assert np.array_equal(one[name], np.full_like(one[name], poison), equal_nan=True)
            else:
                assert len(np.unique(one[name])) > 1
                assert not np.array_equal(one[name], two[name])


@every_kernel
def test_what_it_changes_is_declared(kernel: Kernel) -> None:
    arguments = inputs(kernel, kernel.elements[0], next(awkward(kernel)))
    before = {name: value.copy() for name, value in arguments.items()}
    after = kernel.truth(arguments)
    for name, array in after.items():
        assert same(arguments[name], before[name]).all()
        changed = not same(array, before[name]).all()
        assert changed == (name in kernel.outputs)
        if kernel.arguments[name].role is Role.OUT and array.dtype.kind != "f":
            assert array.min() != np.iinfo(array.dtype).min


@every_kernel
def test_costs(kernel: Kernel) -> None:
    assert list(kernel.datasets) == list(Dataset)
    assert kernel.dependences.endswith(".")
    flops = [kernel.flops(kernel.datasets[which]) for which in Dataset]
    traffic = [kernel.bytes(kernel.datasets[which], np.float32) for which in Dataset]
    assert flops == sorted(flops) or kernel.name in ("atax", "bicg")
    assert traffic[0] > 0
    for which in Dataset:
        sizes = kernel.datasets[which]
        assert kernel.bytes(sizes, np.float64) <= kernel.swept_bytes(sizes, np.float64)


_FLOP = re.compile(
    r"^( {6,})%\S+ = (arith\.(?:add|sub|mul|div|neg|maximum|minimum|cmp)f|math\.\w+|"
    r"arith\.(?:add|sub|mul|maxs|mins|cmp)i) .*: (\S+)$"
)


@every_kernel
def test_flops_are_those_the_code_does(kernel: Kernel, context: ir.Context) -> None:
    """The function counts for itself: one more for each operation on its elements in a loop."""
    element = "f64" if "f64" in kernel.elements else kernel.elements[0]
    sizes = dict(zip(kernel.size_names, (5, 7, 6, 8, 9), strict=False))
    with context:
        module = ir.Module.parse(kernel.mlir(element, sizes))
        run_passes(module.operation, ("convert-linalg-to-loops",))
        text = str(module)
    lines: list[str] = []
    for line in text.splitlines():
        if "func.func" in line:
            lines += [
                line.replace(") {", ", %flops: memref<1xi64>) {"),
                "%counted = arith.constant 0 : index",
                "%once = arith.constant 1 : i64",
            ]
            continue
        lines.append(line)
        found = _FLOP.match(line)
        if found and found[3] in (element, "i8"):
            new = f"%flop{len(lines)}"
            lines += [
                f"{new} = memref.load %flops[%counted] : memref<1xi64>",
                f"{new}_next = arith.addi {new}, %once : i64",
                f"memref.store {new}_next, %flops[%counted] : memref<1xi64>",
            ]
    machine = Machine([("count", "\n".join(lines))], context)
    arguments = inputs(kernel, element, sizes) | {"flops": np.zeros(1, np.int64)}
    assert machine.call("count", arguments)["flops"][0] == kernel.flops(sizes)


def test_mlir_opt_takes_every_file() -> None:
    texts = [
        kernel.mlir(element, sizes)
        for kernel in KERNELS
        for element in kernel.elements
        for sizes in (None, kernel.datasets[Dataset.MINI], kernel.datasets[Dataset.EXTRALARGE])
    ]
    done = subprocess.run(
        [tool("mlir-opt"), "--split-input-file", "--canonicalize"],
        input="\n// -----\n".join(texts),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # a static kernel's sizes become literal bounds, as other compilers print them
    assert "affine.for %arg5 = 0 to 20" in done.stdout
