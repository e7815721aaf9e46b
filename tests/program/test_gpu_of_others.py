"""Kernels in the gpu dialect as other compilers write it: warps, reductions of blocks, branches,
memory of a size that the launch gives, modules, tokens. What runs is compared with NumPy.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import avial_lab
from avial_lab.bundle.pack import TASKS
from avial_lab.compiler.backends.nvptx import mlir_opt
from avial_lab.compiler.requests import RunReference, Source
from avial_lab.core.buffers import bind_arrays, read_box
from avial_lab.core.errors import AvialError
from avial_lab.core.regions import Box
from avial_lab.program.compiler_client import shared_compiler

OTHERS = next(path for path in TASKS if path.stem == "others").read_text()

Arrays = dict[str, np.ndarray]


def arrays_of_others() -> Arrays:
    rng = np.random.default_rng(3)
    given: Arrays = {
        "x": rng.normal(size=1000).astype(np.float32),
        "m": rng.integers(-99, 99, (32, 64)).astype(np.int32),
    }
    shapes = {"rows": (8,), "warps": (32,), "most": (8,), "turned": (64, 32), "lanes": (4, 64)}
    for name, shape in shapes.items():
        given[name] = np.full(shape, -7, np.float32 if name in ("rows", "warps") else np.int32)
    return given


def check_others(arrays: Arrays) -> None:
    x = np.append(arrays["x"], np.zeros(24, np.float32))
    bound = 8 * np.finfo(np.float32).eps
    for name, parts in (("rows", 8), ("warps", 32)):
        rows = x.reshape(parts, -1)
        assert (abs(arrays[name] - rows.sum(1)) <= bound * abs(rows).sum(1)).all()
    assert arrays["most"].tolist() == [128 * b + 127 for b in range(8)]
    np.testing.assert_array_equal(arrays["turned"], arrays["m"].T)
    v = arrays["m"][0].reshape(2, 32)
    before, behind = np.roll(v, 1, 1), np.roll(v, -1, 1)
    before[:, 0] = behind[:, -1] = 0
    sums = np.repeat(v.reshape(2, 4, 8).sum(2), 8, 1)
    wanted = [before, behind, np.repeat(v[:, 31:], 32, 1), sums]
    np.testing.assert_array_equal(arrays["lanes"], np.reshape(wanted, (4, 64)))


@pytest.mark.quick("gpu-1")
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("on", ["cpu", "gpu"])
def test_modules_of_kernels(on: str, ranks: int) -> None:
    gpus = {"gpus": ranks, "on": "gpu"} if on == "gpu" else {}
    program = avial_lab.compile(OTHERS, arrays=arrays_of_others(), ranks=ranks, **gpus)
    seeds = (0, 7) if on == "gpu" else (0,)
    for seed in seeds:
        program.run(check=True, device_seed=seed, oversubscribe=True)
        check_others({name: np.asarray(array) for name, array in program.arrays.items()})
    if on == "gpu":
        rows = [str(row) for row in program.binary.manifest.kernels]
        assert rows[1:] == [
            "S2_kernel: 8 blocks of 128 threads, which share 528 B",
            "S3_kernel: 4 x 2 blocks of 16 x 16 threads, which share 1.12 KiB",
            "S4_kernel: 1 block of 64 threads",
        ]
        ptx = "\n".join(program.binary.ptx.values())
        for form in ("shfl.sync.bfly", "shfl.sync.up", "shfl.sync.idx", ".shared .align 16"):
            assert form in ptx


# One operation at a time, in the reference: the same code as on the emulated device --------------


def launched(body: str, element: str, threads: int, more: str = "") -> str:
    return f"""
  func.func @f(%a: memref<2x{threads}x{element}>, %b: memref<2x{threads}x{element}>) {{
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %n = arith.constant {threads} : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {more} {{
      %v = memref.load %a[%bx, %tx] : memref<2x{threads}x{element}>
{body}
      memref.store %r, %b[%bx, %tx] : memref<2x{threads}x{element}>
      gpu.terminator
    }}
    return
  }}"""


def by_reference(text: str, arrays: Arrays) -> Arrays:
    binding = bind_arrays(arrays)
    data = {s.name: read_box(arrays, s, Box.whole(s.shape)) for s in binding.storages}
    answer = shared_compiler().ask(RunReference(Source(text, "others", binding), data))
    assert answer.violations == ()
    return {name: answer.data[name].reshape(arrays[name].shape) for name in arrays}


def warps(v: np.ndarray, of: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """`of` each warp's values in a row."""
    parts = [of(v[:, k : k + 32]) for k in range(0, v.shape[1], 32)]
    return np.concatenate(parts, 1)


def shifted(v: np.ndarray, by: int) -> np.ndarray:
    lanes = np.arange(v.shape[1])
    source = lanes + by
    return v[:, np.where((source >= 0) & (source < v.shape[1]), source, lanes)]


def all_lanes(sums: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.broadcast_to(sums[:, None], v.shape)


def clustered(v: np.ndarray) -> np.ndarray:
    """Sums of the lanes k, k + 2, k + 4, k + 6."""
    sums = v.reshape(v.shape[0], -1, 4, 2).sum(2)
    return np.broadcast_to(sums[:, :, None], (*sums.shape[:2], 4, 2)).reshape(v.shape)


OPERATIONS: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "all_reduce": (
        "%r = gpu.all_reduce add %v uniform {} : (T) -> T",
        lambda v: all_lanes(v.sum(1), v),
    ),
    "all_reduce with a body": (
        """%r = gpu.all_reduce %v {
           ^bb0(%l: T, %m: T):
             %larger = arith.MAX %l, %m : T
             gpu.yield %larger : T
           } : (T) -> T""",
        lambda v: all_lanes(v.max(1), v),
    ),
    "subgroup_reduce": (
        "%r = gpu.subgroup_reduce add %v : (T) -> T",
        lambda v: warps(v, lambda w: all_lanes(w.sum(1), w)),
    ),
    "subgroup_reduce of a cluster": (
        "%r = gpu.subgroup_reduce add %v cluster(size = 4, stride = 2) : (T) -> T",
        lambda v: warps(v, clustered),
    ),
    "shuffle down": (
        """%far = arith.constant 3 : i32
           %width = arith.constant 32 : i32
           %r, %ok = gpu.shuffle down %v, %far, %width : T""",
        lambda v: warps(v, lambda w: shifted(w, 3)),
    ),
    "shuffles in a loop": (
        """%width = arith.constant 32 : i32
           %c0 = arith.constant 0 : index
           %c5 = arith.constant 5 : index
           %r = scf.for %k = %c0 to %c5 step %c1 iter_args(%s = %v) -> (T) {
             %one = arith.constant 1 : i32
             %round = arith.index_cast %k : index to i32
             %lane = arith.shli %one, %round : i32
             %o, %ok = gpu.shuffle xor %s, %lane, %width : T
             %t = arith.ADD %s, %o : T
             scf.yield %t : T
           }""",
        lambda v: warps(v, lambda w: all_lanes(w.sum(1), w)),
    ),
    "operations of NVIDIA's": (
        """%all = arith.constant -1 : i32
           %far = arith.constant 3 : i32
           %last = arith.constant 31 : i32
           %x = nvvm.read.ptx.sreg.tid.x : i32
           %lane = nvvm.read.ptx.sreg.laneid : i32
           %t = arith.index_cast %x : i32 to index
           %u = memref.load %a[%bx, %t] : memref<2x64xT>
           nvvm.barrier0
           %r = nvvm.shfl.sync down %all, %u, %far, %last : T -> T""",
        lambda v: warps(v, lambda w: shifted(w, 3)),
    ),
    "a shuffle of the second warp alone": (
        """%warp = gpu.subgroup_id : index
           %second = arith.cmpi eq, %warp, %c1 : index
           %r = scf.if %second -> T {
             %far = arith.constant 0 : i32
             %width = arith.constant 32 : i32
             %o, %ok = gpu.shuffle idx %v, %far, %width : T
             scf.yield %o : T
           } else {
             scf.yield %v : T
           }""",
        lambda v: np.where((np.arange(v.shape[1]) // 32 == 1)[None], v[:, 32:33], v),
    ),
}  # fmt: skip


@pytest.mark.parametrize("element", ["f32", "i32"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_threads_do_together(operation: str, element: str) -> None:
    threads = 100 if operation in ("all_reduce", "subgroup_reduce") else 64  # a warp of 4 lanes
    body, meaning = OPERATIONS[operation]
    names = {"f32": ("addf", "maxnumf"), "i32": ("addi", "maxsi")}[element]
    body = body.replace("ADD", names[0]).replace("MAX", names[1])
    for form in ("(T)", ": T", "-> T", "64xT"):
        body = body.replace(form, form.replace("T", element))
    v = np.random.default_rng(4).integers(-50, 50, (2, threads))  # exact in f32, in any order
    a = v.astype(np.float32 if element == "f32" else np.int32)
    got = by_reference(launched(body, element, threads), {"a": a, "b": np.full_like(a, -7)})
    np.testing.assert_array_equal(got["b"], meaning(v))


def test_a_loop_with_barriers_until_a_number_is_small() -> None:
    """As CUDA C++ has it: for (s = n / 2; s > 0; s >>= 1) { …; __syncthreads(); }."""
    body = """%w = memref.alloca() : memref<1xi32>
      cf.br ^head(%half : index)
    ^head(%s: index):
      %c0 = arith.constant 0 : index
      %goes_on = arith.cmpi ugt, %s, %c0 : index
      cf.cond_br %goes_on, ^body, ^end
    ^body:
      %adds = arith.cmpi ult, %tx, %s : index
      scf.if %adds {
        %other = arith.addi %tx, %s : index
        %p = memref.load %share[%tx] : memref<64xi32, 3>
        %q = memref.load %share[%other] : memref<64xi32, 3>
        %t = arith.addi %p, %q : i32
        memref.store %t, %share[%tx] : memref<64xi32, 3>
      }
      gpu.barrier
      %next = arith.shrui %s, %c1 : index
      cf.br ^head(%next : index)
    ^end:
      %r = memref.load %share[%c0] : memref<64xi32, 3>"""
    begin = """      %half = arith.constant 32 : index
      memref.store %v, %share[%tx] : memref<64xi32, 3>
      gpu.barrier
"""
    a = np.random.default_rng(4).integers(-50, 50, (2, 64)).astype(np.int32)
    text = launched(begin + body, "i32", 64, "workgroup(%share : memref<64xi32, 3>)")
    got = by_reference(text, {"a": a, "b": np.full_like(a, -7)})
    np.testing.assert_array_equal(got["b"], all_lanes(a.sum(1), a))


@pytest.mark.parametrize("on", ["cpu", pytest.param("gpu", marks=pytest.mark.slow)])
def test_memory_of_a_block_that_the_kernel_allocates_or_names(on: str) -> None:
    a = np.random.default_rng(6).normal(size=(64, 64)).astype(np.float32)
    arrays = {"a": a, "b": np.full_like(a, -7)}
    if on == "cpu":
        arrays = by_reference(TURNED_TWICE, arrays)
    else:
        program = avial_lab.compile(TURNED_TWICE, arrays=arrays, ranks=1, gpus=1, on="gpu")
        program.run(check=True)
        assert len(program.binary.manifest.kernels) == 2
    np.testing.assert_array_equal(arrays["b"], 2 * a.T)


TURNED_TWICE = """#at = affine_map<()[s0, s1] -> (s0 * 16 + s1)>
module attributes {gpu.container_module} {
  func.func @f(%a: memref<64x64xf32>, %b: memref<64x64xf32>) {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    gpu.launch_func @m::@k blocks in (%c4, %c4, %c1) threads in (%c16, %c16, %c1)
      args(%a : memref<64x64xf32>, %b : memref<64x64xf32>)
    gpu.launch_func @m::@g blocks in (%c4, %c4, %c1) threads in (%c16, %c16, %c1)
      args(%b : memref<64x64xf32>)
    return
  }
  gpu.module @m {
    memref.global "private" @share : memref<16x16xf32, #gpu.address_space<workgroup>>
    func.func private @twice(%x: f32) -> f32 {
      %y = arith.addf %x, %x : f32
      return %y : f32
    }
    gpu.func @k(%a: memref<64x64xf32>, %b: memref<64x64xf32>) kernel {
      %alloc = memref.alloc() : memref<16x17xf32, #gpu.address_space<workgroup>>
      %tx = gpu.thread_id x upper_bound 16
      %ty = gpu.thread_id y upper_bound 16
      %bx = gpu.block_id x upper_bound 4
      %by = gpu.block_id y upper_bound 4
      %i = affine.apply #at()[%by, %ty]
      %j = affine.apply #at()[%bx, %tx]
      %v = memref.load %a[%i, %j] : memref<64x64xf32>
      memref.store %v, %alloc[%ty, %tx] : memref<16x17xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %w = memref.load %alloc[%tx, %ty] : memref<16x17xf32, #gpu.address_space<workgroup>>
      %i2 = affine.apply #at()[%bx, %ty]
      %j2 = affine.apply #at()[%by, %tx]
      memref.store %w, %b[%i2, %j2] : memref<64x64xf32>
      memref.dealloc %alloc : memref<16x17xf32, #gpu.address_space<workgroup>>
      gpu.return
    }
    gpu.func @g(%b: memref<64x64xf32>) kernel {
      %s = memref.get_global @share : memref<16x16xf32, #gpu.address_space<workgroup>>
      %tx = gpu.thread_id x
      %ty = gpu.thread_id y
      %i = gpu.global_id y
      %j = gpu.global_id x
      %v = memref.load %b[%i, %j] : memref<64x64xf32>
      %v2 = func.call @twice(%v) : (f32) -> f32
      memref.store %v2, %s[%tx, %ty] : memref<16x16xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %w = memref.load %s[%tx, %ty] : memref<16x16xf32, #gpu.address_space<workgroup>>
      memref.store %w, %b[%i, %j] : memref<64x64xf32>
      gpu.return
    }
  }
}
"""


def test_what_upstream_outlines_runs_unchanged() -> None:
    """Sizes known at run time, constants and sizes as arguments, tokens, and a loop as branches."""
    passes = ("gpu-kernel-outlining", "func.func(gpu-async-region)", "convert-scf-to-cf")
    done = mlir_opt(passes, PRODUCT)
    assert "gpu.launch_func async" in done.stdout
    assert "cf.cond_br" in done.stdout
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((19, 7), (7, 21)))
    got = by_reference(done.stdout, {"arg0": a, "arg1": b, "arg2": np.full((19, 21), -1, a.dtype)})
    np.testing.assert_array_equal(got["arg2"], a @ b)


PRODUCT = """func.func @product(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?x?xf32>
  %k = memref.dim %a, %c1 : memref<?x?xf32>
  %m = memref.dim %b, %c1 : memref<?x?xf32>
  %c16 = arith.constant 16 : index
  %across = arith.ceildivui %m, %c16 : index
  %down = arith.ceildivui %n, %c16 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %across, %gy = %down, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c16, %sy = %c16, %sz = %c1) {
    %top = arith.muli %by, %sy : index
    %i = arith.addi %top, %ty : index
    %left = arith.muli %bx, %sx : index
    %j = arith.addi %left, %tx : index
    %in_rows = arith.cmpi ult, %i, %n : index
    %in_columns = arith.cmpi ult, %j, %m : index
    %is_in = arith.andi %in_rows, %in_columns : i1
    scf.if %is_in {
      %none = arith.constant 0.0 : f32
      %s = scf.for %l = %c0 to %k step %c1 iter_args(%sum = %none) -> f32 {
        %p = memref.load %a[%i, %l] : memref<?x?xf32>
        %q = memref.load %b[%l, %j] : memref<?x?xf32>
        %r = arith.mulf %p, %q : f32
        %t = arith.addf %sum, %r : f32
        scf.yield %t : f32
      }
      memref.store %s, %c[%i, %j] : memref<?x?xf32>
    }
    gpu.terminator
  }
  return
}"""

LOWERED = """module attributes {gpu.container_module} {
  func.func @f(%a: memref<2x64xi32>, %b: memref<2x64xi32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }
  gpu.module @m {
    llvm.func @k() attributes {gpu.kernel} {
      llvm.return
    }
  }
}"""

DIFFERENT_ROUNDS = """      %c0 = arith.constant 0 : index
      %last = scf.while (%s = %tx) : (index) -> index {
        %goes_on = arith.cmpi ugt, %s, %c0 : index
        gpu.barrier
        scf.condition(%goes_on) %s : index
      } do {
      ^bb0(%q: index):
        %next = arith.subi %q, %c1 : index
        scf.yield %next : index
      }
      %r = arith.addi %v, %v : i32"""

REFUSED = {
    "gpu.barrier inside scf.while whose bounds or condition may differ between threads": (
        launched(DIFFERENT_ROUNDS, "i32", 64),
        10,
    ),
    "kernel @m::@k is not in the program as a gpu.func": (LOWERED, 4),
    "no function of the text launches kernel @m::@k": (
        "gpu.module @m {\n  gpu.func @k(%a: memref<2x64xi32>) kernel {\n    gpu.return\n  }\n}",
        2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_done_is_said_where_it_stands(message: str) -> None:
    text, line = REFUSED[message]
    arrays = {"a": np.zeros((2, 64), np.int32), "b": np.zeros((2, 64), np.int32)}
    with pytest.raises(AvialError, match=message) as caught:
        avial_lab.compile(text, arrays=arrays, ranks=1)
    assert caught.value.span is not None
    assert caught.value.span.line == line
    assert caught.value.hint


# Programs whose host part is theirs too: memory, tokens, tables, loops around launches, prints ----

WHOLE = """module attributes {gpu.container_module} {
  memref.global "private" constant @given : memref<6xi32> = dense<[3, -1, 4, 1, -5, 9]>
  gpu.module @kernels {
    memref.global "private" @table : memref<6xi32> = dense<[1, 10, 100, 1000, 10000, 100000]>
    gpu.func @scaled(%a: memref<6xi32>, %b: memref<6xi32>) kernel {
      %x = gpu.thread_id x
      %t = memref.get_global @table : memref<6xi32>
      %v = memref.load %a[%x] : memref<6xi32>
      %w = memref.load %t[%x] : memref<6xi32>
      %p = arith.muli %v, %w : i32
      memref.store %p, %b[%x] : memref<6xi32>
      gpu.return
    }
    gpu.func @added(%a: memref<6xi32>, %b: memref<6xi32>) kernel {
      %x = gpu.thread_id x
      %v = memref.load %a[%x] : memref<6xi32>
      %s = gpu.all_reduce add %v uniform {} : (i32) -> i32
      memref.store %s, %b[%x] : memref<6xi32>
      gpu.return
    }
  }
  func.func @scale(%a: memref<6xi32>) -> memref<6xi32> {
    %c1 = arith.constant 1 : index
    %c6 = arith.constant 6 : index
    %host = memref.alloc() : memref<6xi32>
    %t, %copied = async.execute -> !async.value<memref<6xi32>> {
      %there = gpu.alloc () : memref<6xi32>
      gpu.memcpy %there, %a : memref<6xi32>, memref<6xi32>
      async.yield %there : memref<6xi32>
    }
    %u = async.execute [%t] (%copied as %there : !async.value<memref<6xi32>>) {
      %out = gpu.alloc () : memref<6xi32>
      gpu.launch_func @kernels::@scaled blocks in (%c1, %c1, %c1) threads in (%c6, %c1, %c1)
        args(%there : memref<6xi32>, %out : memref<6xi32>)
      gpu.memcpy %host, %out : memref<6xi32>, memref<6xi32>
      gpu.dealloc %out : memref<6xi32>
      async.yield
    }
    async.await %u : !async.token
    return %host : memref<6xi32>
  }
  func.func @main() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c6 = arith.constant 6 : index
    %a = memref.get_global @given : memref<6xi32>
    %sums = memref.alloc() : memref<6xi32>
    %open = memref.cast %sums : memref<6xi32> to memref<*xi32>
    gpu.host_register %open : memref<*xi32>
    scf.for %i = %c0 to %c2 step %c1 {
      %b = func.call @scale(%a) : (memref<6xi32>) -> memref<6xi32>
      gpu.launch_func @kernels::@added blocks in (%c1, %c1, %c1) threads in (%c6, %c1, %c1)
        args(%b : memref<6xi32>, %sums : memref<6xi32>)
      func.call @printMemrefI32(%open) : (memref<*xi32>) -> ()
    }
    %first = vector.load %sums[%c1] : memref<6xi32>, vector<2xi32>
    vector.print %first : vector<2xi32>
    return
  }
  func.func private @printMemrefI32(memref<*xi32>) attributes {llvm.emit_c_interface}
}"""


def test_a_whole_program_prints_what_it_prints_there() -> None:
    program = avial_lab.compile(WHOLE, ranks=1, gpus=1, on="gpu")
    assert sum("_kernel" in str(row) for row in program.binary.manifest.kernels) >= 2
    given = np.array([3, -1, 4, 1, -5, 9])
    total = (given * 10 ** np.arange(6)).sum()
    for seed in (0, 5):
        program.run(check=True, device_seed=seed)
        head, row, *rest = program.printed.lines[0]
        assert head.endswith("rank = 1 offset = 0 sizes = [6] strides = [1] data = ")
        assert row == f"[{',  '.join([str(total)] * 6)}]"
        assert rest == [head, row, f"( {total}, {total} )"]


STUB = """
func.func private @stub(%a: memref<?xf32>, %b: memref<?xf32>) {
  %zero = arith.constant 0.0 : f32
  %most = arith.constant 20 : i32
  %block = gpu.block_id x
  %width = gpu.block_dim x
  %first = arith.muli %block, %width : index
  %thread = gpu.thread_id x
  %at = arith.addi %first, %thread : index
  %number = arith.index_cast %at : index to i32
  %row = arith.index_cast %number : i32 to index
  %within = arith.cmpi slt, %number, %most : i32
  scf.if %within {
    %sum = affine.for %k = 0 to 4 iter_args(%so_far = %zero) -> (f32) {
      %v = affine.load %a[%k + symbol(%row) * 4] : memref<?xf32>
      %next = arith.addf %so_far, %v : f32
      affine.yield %next : f32
    }
    affine.store %sum, %b[symbol(%row)] : memref<?xf32>
  }
  return
}
func.func @main(%a: memref<?xf32>, %b: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%x, %y, %z) in (%u = %c2, %v = %c1, %w = %c1)
             threads(%i, %j, %k) in (%l = %c16, %m = %c1, %n = %c1) {
    func.call @stub(%a, %b) : (memref<?xf32>, memref<?xf32>) -> ()
    gpu.terminator
  }
  return
}"""


@pytest.mark.slow
@pytest.mark.parametrize("on", ["cpu", "gpu"])
def test_a_launch_calls_what_knows_its_thread(on: str) -> None:
    """Polygeist's device stubs, whose affine accesses have the thread's number as a symbol."""
    a, b = np.arange(80, dtype=np.float32), np.zeros(20, np.float32)
    avial_lab.compile(STUB, arrays={"a": a, "b": b}, function="main", on=on, ranks=1).run(
        check=True
    )
    np.testing.assert_array_equal(b, a.reshape(20, 4).sum(axis=1))


CONTRACT = """
#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func @product(%a: memref<8x4xNARROW>, %b: memref<4x8xNARROW>, %c: memref<8x8xWIDE>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %low = arith.constant ZERO : NARROW
  %high = arith.constant ZERO : WIDE
  gpu.launch blocks(%x, %y, %z) in (%u = %c1, %v = %c1, %w = %c1)
             threads(%i, %j, %k) in (%l = %c1, %m = %c1, %n = %c1) {
    %p = vector.transfer_read %a[%c0, %c0], %low : memref<8x4xNARROW>, vector<8x4xNARROW>
    %q = vector.transfer_read %b[%c0, %c0], %low : memref<4x8xNARROW>, vector<4x8xNARROW>
    %r = vector.transfer_read %c[%c0, %c0], %high : memref<8x8xWIDE>, vector<8x8xWIDE>
    %s = vector.contract {indexing_maps = [#a, #b, #c],
        iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
        %p, %q, %r : vector<8x4xNARROW>, vector<4x8xNARROW> into vector<8x8xWIDE>
    vector.transfer_write %s, %c[%c0, %c0] : vector<8x8xWIDE>, memref<8x8xWIDE>
    gpu.terminator
  }
  return
}"""


@pytest.mark.slow
@pytest.mark.parametrize(("narrow", "wide"), [("f16", "f32"), ("i8", "i32")])
def test_a_product_whose_sums_are_wider(narrow: str, wide: str) -> None:
    """Sums that the narrow type could not hold."""
    kinds = {"f16": np.float16, "f32": np.float32, "i8": np.int8, "i32": np.int32}
    text = CONTRACT.replace("NARROW", narrow).replace("WIDE", wide)
    text = text.replace("ZERO", "0.0" if wide == "f32" else "0")
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-99, 99, shape).astype(kinds[narrow]) for shape in ((8, 4), (4, 8)))
    c = np.full((8, 8), 100_000, kinds[wide])
    want = c + a.astype(kinds[wide]) @ b.astype(kinds[wide])
    avial_lab.compile(text, arrays={"a": a, "b": b, "c": c}, on="gpu", ranks=1).run(check=True)
    np.testing.assert_array_equal(c, want)


GATHER = """
memref.global "private" @table : memref<8xi32> = dense<[7, 6, 5, 4, 3, 2, 1, 0]>
func.func @f(%out: memref<4xi32>) {
  %c0 = arith.constant 0 : index
  %table = memref.get_global @table : memref<8xi32>
  %at = arith.constant dense<[3, 4, 2, 1]> : vector<4xi32>
  %mask = arith.constant dense<[true, false, true, true]> : vector<4xi1>
  %pass = arith.constant dense<-5> : vector<4xi32>
  %v = vector.gather %table[%c0] [%at], %mask, %pass
    : memref<8xi32>, vector<4xi32>, vector<4xi1>, vector<4xi32> into vector<4xi32>
  vector.store %v, %out[%c0] : memref<4xi32>, vector<4xi32>
  return
}"""


@pytest.mark.slow
def test_a_table_that_vectors_are_gathered_from() -> None:
    """It was taken for written."""
    out = np.zeros(4, np.int32)
    avial_lab.compile(GATHER, arrays={"out": out}, ranks=2).run(check=True)
    assert out.tolist() == [4, -5, 5, 6]


WAITING = """
module attributes {gpu.container_module} {
  gpu.module @both {
    gpu.func @come(%here: memref<2xi32>) kernel {
      %first = arith.constant 0 : index
      %second = arith.constant 1 : index
      %none = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %wanted = memref.load %here[%second] : memref<2xi32>
      %before = memref.atomic_rmw addi %one, %here[%first] : (i32, memref<2xi32>) -> i32
      scf.while : () -> () {
        %now = memref.atomic_rmw addi %none, %here[%first] : (i32, memref<2xi32>) -> i32
        %few = arith.cmpi slt, %now, %wanted : i32
        scf.condition(%few)
      } do {
        scf.yield
      }
      gpu.return
    }
  }
  func.func @main(%here: memref<2xi32>) {
    %c1 = arith.constant 1 : index
    %start = gpu.wait async
    %other = gpu.wait async
    %a = gpu.launch_func async [%start] @both::@come
      blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%here: memref<2xi32>)
    %b = gpu.launch_func async [%other] @both::@come
      blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%here: memref<2xi32>)
    gpu.wait [%a, %b]
    return
  }
}
"""


def test_kernels_that_wait_for_each_other() -> None:
    """The first waits for what the second writes, which is launched after it: told at the line of
    the loop, by the reference, too. What it finds there already it does not wait for.
    """
    arrays = {"here": np.array([0, 1], np.int32)}
    program = avial_lab.compile(WAITING, arrays=arrays, ranks=1, gpus=1, on="gpu")
    program.run(check=True)
    assert arrays["here"].tolist() == [2, 1]
    arrays["here"][:] = 0, 2
    for run in (program.run, program.reference):
        with pytest.raises(AvialError, match="waits for memory that nobody writes") as caught:
            run()
        assert caught.value.span is not None
        line = caught.value.span.text.splitlines()[caught.value.span.line - 1]
        assert "scf.while" in line
