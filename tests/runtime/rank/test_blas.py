"""Products of matrices by a BLAS agree with the reference within the bound of a sum, whatever their
sizes and wherever they lie; what is no product is not called for, and without a library a run is
refused.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from mlir import ir

from avial_lab.benchmarks.kernel_suite import kernel_program
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.options import CompileOptions
from avial_lab.compiler.passes.loops.contractions.block_contractions import BlockContractions
from avial_lab.core.errors import AvialError, ClusterError, ScheduleError
from avial_lab.core.toolchain import tool
from avial_lab.program.compilation import compile as compile_program
from avial_lab.program.program import Program
from avial_lab.runtime.launch.cluster import Cluster
from avial_lab.runtime.native.loader import digest
from avial_lab.runtime.rank import blas, engine

needs_blas = pytest.mark.skipif(blas.blas_here() is None, reason="no BLAS is here")

FORMS = {
    # columns from, to; left; right; what becomes of the element, %a and %b being those
    "plain": ("0", "{m}", "%A[%i + 1, %p + 2]", "%B[%p, %j + 1]", "add"),
    "left_turned": ("0", "{m}", "%L[%p, %i]", "%B[%p, %j]", "add"),
    "right_turned": ("0", "{m}", "%A[%i, %p]", "%R[%j, %p + 1]", "subtract"),
    "both_turned": ("0", "{m}", "%L[%p + 1, %i + 1]", "%R[%j, %p]", "scaled"),
    "two": ("0", "{m}", "%A[%i, %p]", "%B[%p, %j]", "twice"),
    "lower": ("0", "min affine_map<(d) -> (d + 1, {m})>(%i)", "%A[%i, %p]", "%B[%p, %j]", "add"),
    "upper": ("affine_map<(d) -> (d)>(%i)", "{m}", "%A[%i, %p]", "%R[%j, %p]", "scaled"),
    "band": ("max affine_map<(d) -> (0, d - 2)>(%i)", "min affine_map<(d) -> (d + 3, {m})>(%i)",
             "%L[%p, %i]", "%B[%p, %j]", "add"),
}  # fmt: skip

BODIES = {
    "add": "%q = arith.mulf %a, %b : {t}\n %new = arith.addf %c, %q : {t}",
    "subtract": "%q = arith.mulf %a, %b : {t}\n %new = arith.subf %c, %q : {t}",
    "scaled": "%l = arith.mulf %x, %a : {t}\n %q = arith.mulf %l, %b : {t}\n"
    " %new = arith.addf %c, %q : {t}",
    "twice": "%q = arith.mulf %a, %b : {t}\n %r = arith.mulf %b, %a : {t}\n"
    " %s = arith.addf %q, %r : {t}\n %new = arith.addf %c, %s : {t}",
}


def text_of(names: list[str], sizes: tuple[int, int, int], t: str) -> str:
    """A function with a nest for each of the forms, on matrices with more columns than are used."""
    n, m, k = sizes
    shapes = {"A": (n + 1, k + 5), "L": (k + 1, n + 3), "B": (k, m + 4), "R": (m, k + 2)}
    types = {name: f"memref<{r}x{c}x{t}>" for name, (r, c) in shapes.items()}
    of_c = f"memref<{n}x{m + 7}x{t}>"
    arguments = [f"%{name}: {kind}" for name, kind in types.items()]
    arguments += [f"%C_{name}: {of_c}" for name in names]
    nests: list[str] = []
    for name in names:
        low, high, left, right, body = FORMS[name]
        c = f"%C_{name}"
        scale = f"""
          affine.for %i = 0 to {n} {{ affine.for %j = 0 to {m} {{
            %c = affine.load {c}[%i, %j] : {of_c}
            %d = arith.mulf %c, %y : {t}
            affine.store %d, {c}[%i, %j] : {of_c}
          }} }}"""
        nests.append(f"""{scale if body == "scaled" else ""}
          affine.for %i = 0 to {n} {{
            affine.for %j = {low.format(m=m)} to {high.format(m=m)} {{
              affine.for %p = 0 to {k} {{
                %a = affine.load {left} : {types[left[1]]}
                %b = affine.load {right} : {types[right[1]]}
                %c = affine.load {c}[%i, %j] : {of_c}
                {BODIES[body].format(t=t)}
                affine.store %new, {c}[%i, %j] : {of_c}
          }} }} }}""")
    head = ", ".join([*arguments, f"%x: {t}", f"%y: {t}"])
    return f"func.func @f({head}) {{\n{''.join(nests)}\n return\n}}"


def arrays_of(
    names: list[str], sizes: tuple[int, int, int], t: str, *, special: bool = False
) -> dict[str, np.ndarray]:
    n, m, k = sizes
    rng = np.random.default_rng(n + 7 * m + 31 * k)
    shapes = {"A": (n + 1, k + 5), "L": (k + 1, n + 3), "B": (k, m + 4), "R": (m, k + 2)}
    shapes |= {f"C_{name}": (n, m + 7) for name in names}
    dtype = {"f32": np.float32, "f64": np.float64}[t]
    made = {name: rng.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}
    if special:
        odd = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0], dtype)
        for name, array in made.items():
            made[name] = np.where(
                rng.random(array.shape) < 0.03, rng.choice(odd, array.shape), array
            )
    return made


def compiled(
    names: list[str], sizes: tuple[int, int, int], t: str, *,
    x: float = 1.5, y: float = -0.25, special: bool = False,
) -> Program:  # fmt: skip
    arrays = arrays_of(names, sizes, t, special=special)
    text = text_of(names, sizes, t)
    return compile_program(text, arrays=arrays, scalars={"x": x, "y": y}, ranks=1, blas=True)


def check(program: Program, cluster: Cluster | None, threads: int = 1) -> None:
    """What it leaves in its arrays is what the reference does, within the bound of its sums."""
    with np.errstate(all="ignore"):
        program.run(cluster, check=True, threads=threads, oversubscribe=True)
    assert program.check_report


def calls(program: Program) -> int:
    return program.stages["loops"].text.count("llvm.call @avial_gemm_")


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.quick("sizes0-f64", "sizes5-f32")
@needs_blas
@pytest.mark.mpi
@pytest.mark.parametrize(
    ("sizes", "t"),
    [
        ((1, 7, 3), "f64"), ((5, 2, 1), "f32"), ((2, 3, 2), "f64"), ((3, 2, 13), "f32"),
        ((67, 31, 29), "f64"), ((67, 31, 29), "f32"),
    ],
)  # fmt: skip
def test_every_form(sizes: tuple[int, int, int], t: str, cluster: Cluster) -> None:
    names = list(FORMS)
    program = compiled(names, sizes, t)
    assert min(sizes) == 1 or calls(program) > len(FORMS)  # a loop of one iteration is none
    check(program, cluster)


@pytest.mark.quick("f64")
@needs_blas
@pytest.mark.mpi
@pytest.mark.parametrize("t", ["f64", "f32"])
def test_triangles_of_several_blocks(t: str, cluster: Cluster) -> None:
    """Blocks have rows in common, and sides of their own, above, below and beyond the diagonal."""
    names = ["lower", "upper", "band"]
    for sizes in ((300, 280, 5), (131, 300, 3)):
        check(compiled(names, sizes, t), cluster, threads=2)


@pytest.mark.quick("0.0", "nan")
@needs_blas
@pytest.mark.mpi
@pytest.mark.parametrize("x", [0.0, -0.0, np.inf, np.nan, 2.0])
def test_what_is_no_number_stays(x: float, cluster: Cluster) -> None:
    """With a factor of 0 a BLAS looks neither at its matrices nor, scaled by 0, at the sum."""
    names = ["plain", "both_turned", "upper"]
    check(compiled(names, (17, 13, 11), "f64", x=x, y=0.0, special=True), cluster)


@needs_blas
@pytest.mark.mpi
def test_every_library_that_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """With integers of 32 and of 64 bits, where both are there."""
    program = compiled(list(FORMS), (13, 17, 11), "f64")
    for path in dict.fromkeys(blas.candidates()):
        monkeypatch.setenv(blas.VARIABLE, path)
        if blas.blas_here() is not None:
            check(program, None, threads=2)


@pytest.mark.quick("1-gemm", "2-lu", "2-covariance")
@needs_blas
@pytest.mark.mpi
@pytest.mark.parametrize("name", ["gemm", "syrk", "2mm", "lu", "covariance"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_kernels_on_ranks(name: str, ranks: int) -> None:
    numbers = dict.fromkeys(kernel_program(name, size="MINI").sizes, 67)
    kernel = kernel_program(name, size="MINI", element="f64", numbers=numbers)
    program = compile_program(
        kernel.text, arrays=kernel.arrays, scalars=kernel.scalars, function=kernel.function,
        ranks=ranks, blas=True,
    )  # fmt: skip
    program.run(check=True, threads=1)
    assert program.check_report
    assert name == "lu" or "cblas_dgemm" in str(program.explain())


ENTRIES = """
#include "blas.c"
EXPORTED void f64(int64_t m, int64_t n, int64_t k, double alpha, const double *a, int64_t a_row,
               int64_t a_term, const double *b, int64_t b_term, int64_t b_column,
               double *c, int64_t c_row) {
    avial_gemm_f64(m, n, k, alpha, a, a_row, a_term, b, b_term, b_column, c, c_row);
}
EXPORTED void f32(int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t a_row,
               int64_t a_term, const float *b, int64_t b_term, int64_t b_column,
               float *c, int64_t c_row) {
    avial_gemm_f32(m, n, k, alpha, a, a_row, a_term, b, b_term, b_column, c, c_row);
}
"""

STRIDES = ((30, 1), (1, 30), (17, 2), (1, 1), (-13, 1), (5, 1))
"""Rows side by side, columns, neither, all in one line, upwards, and rows on top of each other."""


@needs_blas
@pytest.mark.parametrize(
    "path", list(dict.fromkeys(blas.candidates())), ids=lambda path: Path(path).name
)
@pytest.mark.parametrize("t", ["f32", "f64"])
def test_any_sizes_and_strides(
    path: str, t: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has no form in BLAS is computed all the same, and nothing beside is written."""
    monkeypatch.setenv(blas.VARIABLE, path)
    found = blas.blas_here()
    if found is None:
        pytest.skip(f"{path} is not a BLAS")
    source = Path(blas.__file__).parents[1] / "native"
    (tmp_path / "entries.c").write_text(ENTRIES)
    command = [str(tool("cc")), "-O1", "-shared", "-fPIC", f"-I{source}", "entries.c"]
    subprocess.run([*command, "-o", "entries.so"], cwd=tmp_path, check=True)
    library = ctypes.CDLL(str(tmp_path / "entries.so"))
    for name, value in (("dgemm", found.dgemm), ("sgemm", found.sgemm), ("bits", found.bits)):
        ctypes.c_int64.in_dll(library, f"avial_blas_{name}").value = value
    number = {"f32": ctypes.c_float, "f64": ctypes.c_double}[t]
    word, pointer = ctypes.c_int64, ctypes.c_void_p
    dtype = np.dtype(number)
    gemm = library[t]  # a new object each time
    gemm.restype, gemm.argtypes = None, [
        *[word] * 3, number, pointer, word, word, pointer, word, word, pointer, word
    ]  # fmt: skip
    rng = np.random.default_rng(3)
    memory = rng.standard_normal((2, 2000)).astype(dtype)
    for m, n, k in product((0, 1, 2, 3, 7), repeat=3):
        for left, right in product(STRIDES, repeat=2):
            a, b = (_at(each, sizes, by) for each, sizes, by in
                    ((memory[0], (m, k), left), (memory[1], (k, n), right)))  # fmt: skip
            c = rng.standard_normal((8, 11)).astype(dtype)
            want = c.astype(np.float64)
            want[:m, :n] += 1.5 * (a.astype(np.float64) @ b)
            steps = (x // dtype.itemsize for x in (*a.strides, *b.strides))
            row, term, of_term, column = steps
            gemm(m, n, k, 1.5, a.ctypes.data, row, term, b.ctypes.data, of_term, column,
                       c.ctypes.data, 11)  # fmt: skip
            bound = 40 * np.finfo(dtype).eps * max(1.0, float(np.abs(want).max()))
            np.testing.assert_allclose(c, want, rtol=0, atol=bound)


def _at(memory: np.ndarray, shape: tuple[int, int], strides: tuple[int, int]) -> np.ndarray:
    """A view from the middle of `memory` with these strides, counted in elements."""
    return np.lib.stride_tricks.as_strided(
        memory[1000:], shape, [step * memory.itemsize for step in strides]
    )


# -- what is called --------------------------------------------------------------------------------


def after_blocks(loops: str, arguments: str) -> str:
    text = f"func.func @f({arguments}) attributes {{avial.no_alias}} {{ {loops} return }}"
    module = ir.Module.parse(text, ir.Context())
    run_passes(module.operation, (BlockContractions(blas=True),))
    return str(module)


MATRIX = "memref<40x40xf64>"
NEST = """
affine.for %i = 0 to {rows} {{ affine.for %j = 0 to 20 {{ affine.for %p = 0 to {terms} {{
  %a = affine.load {left} : {m}
  %b = affine.load {right} : {m}
  %c = affine.load %C[%i, %j] : {m}
  {new}
  affine.store %new, %C[%i, %j] : {m}
}} }} }}"""


@pytest.mark.parametrize(
    ("rows", "terms", "left", "right", "new", "called"),
    [
        ("20", "20", "%A[%i, %p]", "%A[%p, %j]", "fma", True),
        # Other rows of the same array are other memory; its own rows are not.
        ("20", "20", "%A[%i, %p]", "%C[%p + 20, %j]", "fma", True),
        ("20", "20", "%A[%i, %p]", "%C[%p + 19, %j]", "fma", False),
        ("20", "affine_map<(d) -> (d + 1)>(%i)", "%A[%i, %p]", "%A[%p, %j]", "fma", False),
        ("20", "20", "%A[%i + %p, %p]", "%A[%p, %j]", "fma", False),
        ("20", "20", "%A[%i, %p * 2]", "%A[%p, %j]", "fma", False),
        ("20", "20", "%A[%i, 39 - %p]", "%A[%p, %j]", "fma", False),
        ("20", "20", "%A[0, %p]", "%A[%p, %j]", "fma", False),
        ("20", "20", "%A[%i, %p]", "%A[%p, %j]", "least", False),
        ("20", "20", "%A[%i, %p]", "%A[%p, %j]", "sum", False),
    ],
)
def test_only_products_of_matrices_are_called_for(
    rows: str, terms: str, left: str, right: str, new: str, called: bool
) -> None:
    bodies = {
        "fma": "%new = math.fma %a, %b, %c : f64",
        "least": "%q = arith.addf %a, %b : f64 %new = arith.minimumf %c, %q : f64",
        "sum": "%q = arith.addf %a, %b : f64 %new = arith.addf %c, %q : f64",
    }
    nest = NEST.format(m=MATRIX, rows=rows, terms=terms, left=left, right=right, new=bodies[new])
    text = after_blocks(nest, f"%C: {MATRIX}, %A: {MATRIX}")
    assert ("call @avial_gemm_f64" in text) is called


@needs_blas
def test_nothing_is_called_unless_asked() -> None:
    names = ["plain"]
    arrays, text = arrays_of(names, (9, 9, 9), "f64"), text_of(names, (9, 9, 9), "f64")
    program = compile_program(text, arrays=arrays, scalars={"x": 1.0, "y": 1.0}, ranks=1)
    assert calls(program) == 0
    assert not engine_loads(program).exports(blas.BITS)


def engine_loads(program: Program) -> engine.LoadedProgram:
    binary = program.binary
    return engine.load(binary.shared_object, digest(binary.shared_object), binary.manifest)


@pytest.mark.parametrize(
    "options", [{"strict": True}, {"without": "block-contractions"}, {"without": "all"}]
)
def test_what_excludes_each_other_is_refused(options: dict[str, object]) -> None:
    arguments: dict[str, object] = {"without": "", "blas": True} | options
    with pytest.raises(ScheduleError) as raised:
        CompileOptions.of(**arguments)  # pyright: ignore[reportArgumentType]
    assert raised.value.hint


# -- the library -----------------------------------------------------------------------------------


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(blas.VARIABLE, raising=False)
    monkeypatch.setattr(blas, "candidates", lambda: iter(()))
    blas._first.cache_clear()
    yield
    blas._first.cache_clear()


def test_without_a_library_the_run_is_refused(nowhere: None) -> None:
    program = engine_loads(compiled(["plain"], (3, 3, 3), "f64"))
    with pytest.raises(ClusterError, match="none was found") as raised, blas.products(program, 1):
        pytest.fail("it ran")
    assert raised.value.hint is not None
    assert "pip install scipy" in raised.value.hint


@pytest.mark.mpi
def test_a_rank_says_that_what_was_named_is_no_blas(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(blas.VARIABLE, str(tmp_path / "none.so"))
    program = compiled(["plain"], (3, 3, 3), "f64")
    with pytest.raises(AvialError, match="which is not a BLAS"):
        program.run()


@needs_blas
def test_its_threads_are_the_runs_and_then_what_they_were() -> None:
    found = blas.needed()
    if found.threads is None:
        pytest.skip("nobody can tell its threads")
    program = engine_loads(compiled(["plain"], (3, 3, 3), "f64"))
    before = found.threads(1)
    try:
        with blas.products(program, 2):
            assert found.threads(2) == 2
        assert found.threads(1) == 1
    finally:
        found.threads(before)


COMMON = "void cblas_dgemm(void) {} void cblas_sgemm(void) {} static long now = 3;"


@pytest.mark.parametrize(
    ("more", "name", "bits", "told"),
    [
        ("", "a BLAS", 32, False),
        ("int MKL_Set_Num_Threads_Local(int n) { int o = now; now = n; return o; }",
         "MKL", 32, True),
        ("long bli_info_get_blas_int_type_size(void) { return 64; }"
         "long bli_thread_get_num_threads(void) { return now; }"
         "void bli_thread_set_num_threads(long n) { now = n; }", "BLIS", 64, True),
        ('const char *openblas_get_config(void) { return "OpenBLAS 1.2.3 USE64BITINT"; }'
         "int openblas_get_num_threads(void) { return now; }"
         "void openblas_set_num_threads(int n) { now = n; }", "OpenBLAS 1.2.3", 64, True),
        ('const char *openblas_get_config(void) { return "OpenBLAS 1.2.3 NO_AFFINITY"; }'
         'const char *openblas_get_corename(void) { return "Haswell"; }'
         "int openblas_get_num_threads(void) { return now; }"
         "void openblas_set_num_threads(int n) { now = n; }",
         "OpenBLAS 1.2.3 for Haswell", 32, True),
    ],
)  # fmt: skip
def test_how_each_is_told(
    more: str, name: str, bits: int, told: bool,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Libraries by what they export; stand-ins for those that are not here."""
    (tmp_path / "some.c").write_text(COMMON + more)
    path = tmp_path / "libsome.so"
    command = [str(tool("cc")), "-shared", "-fPIC", "some.c", "-o", str(path)]
    subprocess.run(command, cwd=tmp_path, check=True)
    monkeypatch.setenv(blas.VARIABLE, str(path))
    found = blas.needed()
    assert (found.name, found.bits) == (name, bits)
    assert found.dgemm == ctypes.cast(ctypes.CDLL(str(path)).cblas_dgemm, ctypes.c_void_p).value
    exchange: Callable[[int], int] | None = found.threads
    assert (exchange is not None) is told
    if exchange is not None:
        assert (exchange(5), exchange(3)) == (3, 5)
