"""What NVIDIA's dialect and others' kernels ask of warps and blocks: votes, reductions, parts of
warps, barriers with sums, copies meanwhile, prints, memory and blocks whose size the launch
computes.

The witness is NumPy, or for shuffles the rules of PTX's manual, thread by thread.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import avial_lab
from avial_lab.artifact.kernels import images_in
from avial_lab.compiler.requests import RunReference, Source
from avial_lab.core.buffers import bind_arrays, read_box
from avial_lab.core.errors import AvialError
from avial_lab.core.regions import Box
from avial_lab.core.toolchain import find_tool
from avial_lab.program.compiler_client import shared_compiler

THREADS = 50
"""A whole warp, and one of 18 lanes."""

Arrays = dict[str, np.ndarray]
Meaning = Callable[[np.ndarray], np.ndarray]


def launched(body: str, *, threads: str = "%c50", before: str = "", more: str = "") -> str:
    return f"""func.func @f(%a: memref<2x50xi32>, %b: memref<2x50xi32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c50 = arith.constant 50 : index
  %all = arith.constant -1 : i32
  %zero = arith.constant 0 : i32
  %three = arith.constant 3 : i32
{before}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = {threads}, %sy = %c1, %sz = %c1) {more} {{
    %v = memref.load %a[%bx, %tx] : memref<2x50xi32>
{body}
    memref.store %r, %b[%bx, %tx] : memref<2x50xi32>
    gpu.terminator
  }}
  return
}}"""


def given() -> Arrays:
    a = np.random.default_rng(4).integers(-50, 50, (2, THREADS)).astype(np.int32)
    a[0, 3:9] = 7
    return {"a": a, "b": np.full_like(a, -99)}


def by_reference(text: str, arrays: Arrays) -> np.ndarray:
    binding = bind_arrays(arrays)
    data = {s.name: read_box(arrays, s, Box.whole(s.shape)) for s in binding.storages}
    answer = shared_compiler().ask(RunReference(Source(text, "warps", binding), data))
    assert answer.violations == ()
    return answer.data["b"].reshape(arrays["b"].shape)


def warps(v: np.ndarray) -> list[slice]:
    return [slice(k, min(k + 32, v.shape[1])) for k in range(0, v.shape[1], 32)]


def each_warp(of: Callable[[list[int], int], int]) -> Meaning:
    """`of` the numbers of a warp and a lane of it, for every thread."""

    def meaning(v: np.ndarray) -> np.ndarray:
        r = np.empty_like(v)
        for row, to in zip(v.tolist(), r, strict=True):
            for part in warps(v):
                own = row[part]
                to[part] = [np.array(of(own, k) & 0xFFFFFFFF, np.uint32).view(np.int32)
                            for k in range(len(own))]  # fmt: skip
        return r

    return meaning


def shuffled(mode: str, b: int, c: int, *, else_zero: bool = False) -> Meaning:
    """PTX ISA, shfl.sync, "Semantics"."""

    def of(own: list[int], lane: int) -> int:
        bval, cval, segmask = b & 31, c & 31, (c >> 8) & 31
        most, least = (lane & segmask) | (cval & ~segmask & 31), lane & segmask
        j, there = {
            "up": (lane - bval, lane - bval >= most),
            "down": (lane + bval, lane + bval <= most),
            "bfly": (lane ^ bval, (lane ^ bval) <= most),
            "idx": (least | (bval & ~segmask & 31), (least | (bval & ~segmask & 31)) <= most),
        }[mode]
        if not there and else_zero:
            return 0
        if there and j >= len(own):
            return -1  # no thread: a device has anything
        return own[j if there else lane]

    return each_warp(of)


def next_lane(own: list[int], lane: int) -> int:
    """Of a whole warp's last lane its own; of the last one of a part poison."""
    if lane + 1 < len(own):
        return own[lane + 1]
    return own[lane] if lane == 31 else -1


def bits(own: list[int], holds: Callable[[int], bool]) -> int:
    return sum(1 << k for k, x in enumerate(own) if holds(x))


def parts(mode: str, b: int, c: int) -> str:
    return f"""%far = arith.constant {b} : i32
      %clamp = arith.constant {c} : i32
      %r = nvvm.shfl.sync {mode} %all, %v, %far, %clamp : i32 -> i32"""


PAIR = """%pair = nvvm.shfl.sync {0} %all, %v, %three, %clamp {{return_value_and_is_valid}}
        : i32 -> !llvm.struct<(i32, i1)>
      %x = llvm.extractvalue %pair[0] : !llvm.struct<(i32, i1)>
      %ok = llvm.extractvalue %pair[1] : !llvm.struct<(i32, i1)>
      %r = arith.select %ok, %x, %zero : i32"""


def both(mode: str, c: int) -> str:
    return f"%clamp = arith.constant {c} : i32\n      {PAIR.format(mode)}"


POSITIVE = "%p = arith.cmpi sgt, %v, %zero : i32\n      "

CASES: dict[str, tuple[str, Meaning, str]] = {
    "ballot": (
        POSITIVE + "%r = nvvm.vote.sync ballot %all, %p -> i32",
        each_warp(lambda own, _: bits(own, lambda x: x > 0)), "vote.sync.ballot",
    ),
    "any": (
        POSITIVE + "%f = nvvm.vote.sync any %all, %p -> i1\n %r = arith.extui %f : i1 to i32",
        each_warp(lambda own, _: any(x > 0 for x in own)), "vote.sync.any",
    ),
    "all": (
        "%p = arith.cmpi slt, %v, %three : i32\n %f = nvvm.vote.sync all %all, %p -> i1\n"
        "%r = arith.extui %f : i1 to i32",
        each_warp(lambda own, _: all(x < 3 for x in own)), "vote.sync.all",
    ),
    "uni": (
        "%p = arith.cmpi sgt, %v, %all : i32\n %f = nvvm.vote.sync uni %all, %p -> i1\n"
        "%r = arith.extui %f : i1 to i32",
        each_warp(lambda own, _: len({x > -1 for x in own}) == 1), "vote.sync.uni",
    ),
    "a mask for each half": (
        """%lane = nvvm.read.ptx.sreg.laneid : i32
      %c16 = arith.constant 16 : i32
      %low = arith.constant 65535 : i32
      %high = arith.constant -65536 : i32
      %first = arith.cmpi ult, %lane, %c16 : i32
      %mask = arith.select %first, %low, %high : i32
      """ + POSITIVE + "%r = nvvm.vote.sync ballot %mask, %p -> i32",
        each_warp(lambda own, k: bits(own, lambda x: x > 0) & (0xFFFF if k < 16 else 0xFFFF0000)),
        "vote.sync.ballot",
    ),
    "redux add": (
        "%r = nvvm.redux.sync add %v, %all : i32 -> i32",
        each_warp(lambda own, _: sum(own)), "redux.sync.add",
    ),
    "redux min": (
        "%r = nvvm.redux.sync min %v, %all : i32 -> i32",
        each_warp(lambda own, _: min(own)), "redux.sync.min.s32",
    ),
    "redux umax": (
        "%r = nvvm.redux.sync umax %v, %all : i32 -> i32",
        each_warp(lambda own, _: max(x & 0xFFFFFFFF for x in own)), "redux.sync.max.u32",
    ),
    "redux xor": (
        "%r = nvvm.redux.sync xor %v, %all : i32 -> i32",
        each_warp(lambda own, _: int(np.bitwise_xor.reduce(own))), "redux.sync.xor",
    ),
    "match any": (
        "%r = nvvm.match.sync any %all, %v : i32 -> i32",
        each_warp(lambda own, k: bits(own, lambda x: x == own[k])), "match.any.sync",
    ),
    "match all": (
        """%s = arith.minsi %v, %all : i32
      %w = arith.maxsi %s, %all : i32
      %pair = nvvm.match.sync all %all, %w : i32 -> !llvm.struct<(i32, i1)>
      %x = llvm.extractvalue %pair[0] : !llvm.struct<(i32, i1)>
      %ok = llvm.extractvalue %pair[1] : !llvm.struct<(i32, i1)>
      %r = arith.select %ok, %x, %zero : i32""",
        each_warp(lambda own, _: bits(own, lambda _: True)), "match.any.sync",
    ),
    "elect": (
        "%p = nvvm.elect.sync -> i1\n %r = arith.select %p, %v, %zero : i32",
        each_warp(lambda own, k: own[k] if k == 0 else 0), "elect.sync",
    ),
    "lanes below": (
        "%r = nvvm.read.ptx.sreg.lanemask.lt : i32",
        each_warp(lambda _, k: (1 << k) - 1), "laneid|tid.x",
    ),
    "lanes from here on": (
        "%r = nvvm.read.ptx.sreg.lanemask.ge : i32",
        each_warp(lambda _, k: -(1 << k)), "tid.x",
    ),
    "lanes above and up to here": (
        """%g = nvvm.read.ptx.sreg.lanemask.gt : i32
      %l = nvvm.read.ptx.sreg.lanemask.le : i32
      %e = nvvm.read.ptx.sreg.lanemask.eq : i32
      %s = arith.subi %l, %g : i32
      %r = arith.subi %s, %e : i32""",
        each_warp(lambda _, k: (2 << k) - 1 + (2 << k) - (1 << k)), "tid.x",
    ),
    "numbers of warps": (
        """%w = nvvm.read.ptx.sreg.warpid : i32
      %n = nvvm.read.ptx.sreg.nwarpid : i32
      %s = nvvm.read.ptx.sreg.warpsize : i32
      %x = arith.muli %w, %n : i32
      %r = arith.addi %x, %s : i32""",
        lambda v: np.broadcast_to(32 + 2 * (np.arange(THREADS) // 32), v.shape), "tid.x",
    ),
    "down in eights": (parts("down", 3, 0x181F), shuffled("down", 3, 0x181F), "shfl.sync.down"),
    "up in fours": (parts("up", 1, 0x1C00), shuffled("up", 1, 0x1C00), "shfl.sync.up"),
    "idx in sixteens": (parts("idx", 21, 0x101F), shuffled("idx", 21, 0x101F), "shfl.sync.idx"),
    "bfly in eights": (parts("bfly", 9, 0x181F), shuffled("bfly", 9, 0x181F), "shfl.sync.bfly"),
    "up, and whether": (both("up", 0), shuffled("up", 3, 0, else_zero=True), "shfl.sync.up"),
    "down in eights, and whether": (
        both("down", 0x181F), shuffled("down", 3, 0x181F, else_zero=True), "shfl.sync.down",
    ),
    "idx up to a lane, and whether": (
        both("idx", 2), shuffled("idx", 3, 2, else_zero=True), "shfl.sync.idx",
    ),
    "rotate": (
        "%r, %ok = gpu.rotate %v, 3, 4 : i32",
        each_warp(lambda own, k: own[j] if (j := k - k % 4 + (k + 3) % 4) < len(own) else -1),
        "shfl.sync.idx",
    ),
    "broadcast": (
        "%l = arith.constant 5 : i32\n %r = gpu.subgroup_broadcast %v, specific_lane %l : i32",
        each_warp(lambda own, _: own[5]), "shfl.sync.idx",
    ),
    "among the first lanes": (
        """%four = arith.constant 4 : i32
      %far = arith.constant 13 : i32
      %x, %ok = gpu.shuffle xor %v, %four, %far : i32
      %r = arith.select %ok, %x, %zero : i32""",
        each_warp(lambda own, k: own[k ^ 4] if (k ^ 4) < 13 else 0), "shfl.sync.bfly",
    ),
    "numbers of 64 bits": (
        """%w = arith.extsi %v : i32 to i64
      %f = arith.sitofp %w : i64 to f64
      %one = arith.constant 1 : i32
      %width = arith.constant 32 : i32
      %x, %ok = gpu.shuffle down %f, %one, %width : f64
      %is_known = arith.cmpf ord, %x, %x : f64
      %i = arith.fptosi %x : f64 to i32
      %r = arith.select %is_known, %i, %all : i32""",
        each_warp(next_lane), "shfl.sync.down",
    ),
    "numbers of 8 bits": (
        """%w = arith.trunci %v : i32 to i8
      %one = arith.constant 1 : i32
      %width = arith.constant 32 : i32
      %x, %ok = gpu.shuffle down %w, %one, %width : i8
      %r = arith.extsi %x : i8 to i32""",
        each_warp(next_lane), "shfl.sync.down",
    ),
    "how many at a barrier": (
        POSITIVE + """%e = arith.extui %p : i1 to i32
      %r = nvvm.barrier #nvvm.reduction<popc> %e -> i32""",
        lambda v: np.broadcast_to((v > 0).sum(1, keepdims=True), v.shape), "bar.red|barrier.*red",
    ),
    "whether all at a barrier": (
        "%r = nvvm.barrier #nvvm.reduction<and> %v -> i32",
        lambda v: np.broadcast_to((v != 0).all(1, keepdims=True), v.shape).astype(int),
        "bar.red|barrier.*red",
    ),
    "until nobody goes on": (
        """%last:2 = scf.while (%x = %v, %n = %zero) : (i32, i32) -> (i32, i32) {
        %p = arith.cmpi sgt, %x, %zero : i32
        %e = arith.extui %p : i1 to i32
        %s = nvvm.barrier #nvvm.reduction<or> %e -> i32
        %on = arith.cmpi ne, %s, %zero : i32
        scf.condition(%on) %x, %n : i32, i32
      } do {
      ^bb0(%x: i32, %n: i32):
        %y = arith.addi %x, %all : i32
        %m = arith.subi %n, %all : i32
        scf.yield %y, %m : i32, i32
      }
      %r = arith.addi %last#1, %zero : i32""",
        lambda v: np.broadcast_to(v.clip(0).max(1, keepdims=True), v.shape), "bar.red|barrier.*red",
    ),
    "votes of those that run": (
        POSITIVE + """%takes = nvvm.vote.sync ballot %all, %p -> i32
      %others = arith.xori %takes, %all : i32
      %r = scf.if %p -> i32 {
        %m = nvvm.vote.sync ballot %takes, %p -> i32
        scf.yield %m : i32
      } else {
        %s = nvvm.redux.sync add %v, %others : i32 -> i32
        scf.yield %s : i32
      }""",
        each_warp(lambda own, k: bits(own, lambda x: x > 0) if own[k] > 0
                  else sum(x for x in own if x <= 0)), "redux.sync.add",
    ),
}  # fmt: skip


@pytest.mark.quick("ballot", "match all", "down in eights, and whether", "until nobody goes on",
                   "votes of those that run", "numbers of 64 bits", "a mask for each half",
                   "among the first lanes")  # fmt: skip
@pytest.mark.parametrize("case", CASES)
def test_what_they_find_of_each_other(case: str) -> None:
    body, meaning, _ = CASES[case]
    arrays = given()
    np.testing.assert_array_equal(by_reference(launched(body), arrays), meaning(arrays["a"]))


def compiled(text: str, arrays: Arrays) -> avial_lab.Program:
    return avial_lab.compile(text, arrays=arrays, ranks=1, gpus=1, on="gpu")


def assembled(program: avial_lab.Program, tmp_path: Path, *chips: str) -> None:
    """ptxas takes its kernels, where there is one."""
    ptxas = find_tool("ptxas")
    for image in images_in(program.binary.ptx.values()).values() if ptxas else ():
        (tmp_path / "k.ptx").write_text(image)
        for chip in chips:
            command = [str(ptxas), f"--gpu-name={chip}", "k.ptx", "-o", "k.cubin"]
            done = subprocess.run(
                command, cwd=tmp_path, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr


@pytest.mark.quick("ballot")
@pytest.mark.parametrize("case", CASES)
def test_they_are_kernels(case: str, tmp_path: Path) -> None:
    """As a device is given them, and as the emulated one runs them."""
    body, meaning, form = CASES[case]
    arrays = given()
    program = compiled(launched(body), arrays)
    (ptx,) = program.binary.ptx.values()
    assert any(each in ptx for each in form.split("|")) or "barrier" in form, ptx
    for seed in (0, 7):
        arrays["b"][...] = -99
        program.run(check=True, device_seed=seed)
        np.testing.assert_array_equal(program.arrays["b"], meaning(arrays["a"]))
    assembled(program, tmp_path, "sm_90")


# Sizes that the launch computes ------------------------------------------------------------------

TURNED = """%t = memref.view %m[%c0][%n] : memref<?xi8, #gpu.address_space<workgroup>>
        to memref<?xi32, #gpu.address_space<workgroup>>
      memref.store %v, %t[%tx] : memref<?xi32, #gpu.address_space<workgroup>>
      gpu.barrier
      %behind = arith.subi %n, %c1 : index
      %other = arith.subi %behind, %tx : index
      %r = memref.load %t[%other] : memref<?xi32, #gpu.address_space<workgroup>>"""

ASKED = "%m = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>\n      "

COMPUTED = """  %e = memref.load %a[%c0, %c0] : memref<2x50xi32>
  %n = arith.index_cast %e : i32 to index
  %nbytes = arith.muli %e, %each : i32"""


def turned(each: int) -> str:
    """Blocks of as many threads as the first number says, which turn around what they load."""
    before = f"  %each = arith.constant {each} : i32\n{COMPUTED}"
    more = "dynamic_shared_memory_size %nbytes"
    return launched(ASKED + TURNED, threads="%n", before=before, more=more)


def test_memory_and_blocks_of_a_size_that_the_launch_computes() -> None:
    arrays = given()
    program = compiled(turned(4), arrays)
    assert [str(row) for row in program.binary.manifest.kernels][-1].endswith("of n threads")
    (ptx,) = program.binary.ptx.values()
    assert ".extern .shared .align 16" in ptx
    for n in (41, 1, 50):
        arrays["a"][0, 0] = n
        arrays["b"][...] = -99
        program.run(check=True)
        wanted = np.full_like(arrays["a"], -99)
        wanted[:, :n] = arrays["a"][:, :n][:, ::-1]
        np.testing.assert_array_equal(program.arrays["b"], wanted)


def test_too_much_of_it_is_told_at_the_launch() -> None:
    arrays = given()
    program = compiled(turned(5000), arrays)
    arrays["a"][0, 0] = 50
    with pytest.raises(AvialError, match="250000 bytes of shared memory in a block") as caught:
        program.run()
    assert caught.value.span is not None
    assert "gpu.launch" in caught.value.span.text.splitlines()[caught.value.span.line - 1]
    arrays["a"][0, 0] = 0
    with pytest.raises(AvialError, match="a block of 0 threads in x"):
        program.run()


LARGE = launched(
    """memref.store %v, %s[%tx, %c0] : memref<50xSIZExi32, #gpu.address_space<workgroup>>
      memref.store %zero, %u[%tx] : memref<50xi8, #gpu.address_space<workgroup>>
      gpu.barrier
      %c49 = arith.constant 49 : index
      %other = arith.subi %c49, %tx : index
      %r = memref.load %s[%other, %c0] : memref<50xSIZExi32, #gpu.address_space<workgroup>>""",
    more="workgroup(%u : memref<50xi8, #gpu.address_space<workgroup>>, "
    "%s : memref<50xSIZExi32, #gpu.address_space<workgroup>>)",
).replace("%zero, %u", "%none, %u").replace(
    "    %v = ", "    %none = arith.constant 0 : i8\n    %v = "
)  # fmt: skip


def test_more_memory_of_a_block_than_a_kernel_has_by_itself(tmp_path: Path) -> None:
    arrays = given()
    program = compiled(LARGE.replace("SIZE", "401"), arrays)
    program.run(check=True)
    np.testing.assert_array_equal(program.arrays["b"], arrays["a"][:, ::-1])
    (row,) = program.binary.manifest.kernels
    assert row.shared_bytes == 64 + 401 * 200 + 8  # each begins at a whole 16 bytes
    (ptx,) = program.binary.ptx.values()
    assert ".extern .shared" in ptx
    assembled(program, tmp_path, "sm_80", "sm_90")


TASK = """avial.schedule %a: memref<2x50xi32>, %b: memref<2x50xi32> {{
  %gpu = avial.target {{arch = "{}"}}
  %t = avial.task %gpu, %a, %b {{
{}
}}}}"""


def as_task(text: str, arch: str) -> str:
    return TASK.format(arch, "\n".join(text.splitlines()[1:-2]))


REFUSED = {
    "78.4 KiB of shared memory in a block; sm_75 has 64 KiB": (
        as_task(LARGE.replace("SIZE", "401"), "sm_75"), "gpu.launch",
    ),
    "nvvm.redux.sync is of sm_80, and the target is sm_75": (
        as_task(launched(CASES["redux add"][0]), "sm_75"), "nvvm.redux.sync",
    ),
    "the shared memory of this launch is of -4 bytes": (
        launched(ASKED + "%r = arith.addi %v, %v : i32",
                 before="  %less = arith.constant -4 : i32",
                 more="dynamic_shared_memory_size %less"), "gpu.launch",
    ),
    "the text asks for 2 numbers, and there are 1 behind it": (
        launched('gpu.printf "%d %d\\0A", %v : i32\n %r = arith.addi %v, %v : i32'), "gpu.printf",
    ),
    "%f does not print a number of type i32": (
        launched('gpu.printf "%f\\0A", %v : i32\n %r = arith.addi %v, %v : i32'), "gpu.printf",
    ),
    "%s is not printed by threads": (
        launched('gpu.printf "%s\\0A", %v : i32\n %r = arith.addi %v, %v : i32'), "gpu.printf",
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_is_said_where_it_stands(message: str) -> None:
    text, line = REFUSED[message]
    with pytest.raises(AvialError, match=message) as caught:
        avial_lab.compile(text, arrays=given(), ranks=1, gpus=1)
    span = caught.value.span
    assert span is not None
    assert line in span.text.splitlines()[span.line - 1]
    assert caught.value.hint


# Told when it runs: what a device does not define -------------------------------------------------

NOT_ALL_COME = {
    "a vote": """%r = scf.if %p -> i32 {
        %m = nvvm.vote.sync ballot %all, %p -> i32
        scf.yield %m : i32
      } else { scf.yield %zero : i32 }""",
    "a shuffle": """%width = arith.constant 32 : i32
      %r = scf.if %p -> i32 {
        %x, %ok = gpu.shuffle xor %v, %width, %width : i32
        scf.yield %x : i32
      } else { scf.yield %zero : i32 }""",
    "a mask without oneself": """%one = arith.constant 1 : i32
      %r = scf.if %p -> i32 {
        %m = nvvm.vote.sync ballot %one, %p -> i32
        scf.yield %m : i32
      } else { scf.yield %zero : i32 }""",
}


@pytest.mark.quick("a vote")
@pytest.mark.parametrize("what", NOT_ALL_COME)
def test_lanes_that_a_warp_waits_for_and_that_do_not_come(what: str) -> None:
    text = launched(POSITIVE + NOT_ALL_COME[what])
    program = compiled(text, given())
    for run in (program.run, program.reference):
        with pytest.raises(AvialError, match="threads of a warp that it waits for") as caught:
            run()
        assert caught.value.span is not None
        line = caught.value.span.text.splitlines()[caught.value.span.line - 1]
        assert "gpu.shuffle" in line or "nvvm.vote" in line


LOADED = """avial.schedule %sizes, %b {
  %gpu = avial.target {arch = "gpu"}
  %t = avial.task %gpu, %sizes, %b {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %across = memref.load %sizes[%c0] : memref<2xi64>
    %blocks = memref.load %sizes[%c1] : memref<2xi64>
    %n = arith.index_cast %across : i64 to index
    %m = arith.index_cast %blocks : i64 to index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %m, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
      %v = arith.index_cast %tx : index to i32
      memref.store %v, %b[%tx] : memref<3000xi32>
      gpu.terminator
    }
  }
}"""


@pytest.mark.parametrize(
    ("sizes", "message"),
    [((1024, 2), ""), ((1025, 1), "a block has from 1 to 1,024 threads"),
     pytest.param((0, 1), "a block has from 1 to 1,024 threads", marks=pytest.mark.slow),
     pytest.param((7, 1 << 40), "a grid has up to 2,147,483,647", marks=pytest.mark.slow)],
)  # fmt: skip
def test_sizes_that_a_task_loads(sizes: tuple[int, int], message: str) -> None:
    arrays = {"sizes": np.array(sizes), "b": np.full(3000, -7, np.int32)}
    program = avial_lab.compile(LOADED, arrays=arrays, ranks=1, gpus=1)
    if message:
        with pytest.raises(AvialError, match=message) as caught:
            program.run()
        assert caught.value.span is not None
        assert caught.value.span.line == 10
    else:
        program.run(check=True)
        assert program.arrays["b"][:1025].tolist() == [*range(1024), -7]


# Prints -------------------------------------------------------------------------------------------

PRINTS = launched("""%first = arith.cmpi ult, %tx, %c2 : index
      %f = arith.sitofp %v : i32 to f32
      %s = arith.trunci %v : i32 to i8
      scf.if %first {
        gpu.printf "block %lld, thread %d: %5.1f|%hhd|%x, 100 %%\\0A", %bx, %tx, %f, %s, %v
          : index, index, f32, i8, i32
      }
      gpu.barrier
      %last = arith.cmpi eq, %tx, %c2 : index
      scf.if %last { gpu.printf "done\\0A" }
      %r = arith.addi %v, %v : i32""")


def test_threads_print(tmp_path: Path) -> None:
    """What C's printf prints, in the order of blocks and threads; the reference prints nothing."""
    arrays = given()
    program = compiled(PRINTS, arrays)
    program.run(check=True)
    np.testing.assert_array_equal(program.arrays["b"], 2 * arrays["a"])
    wanted: list[str] = []
    for block in (0, 1):
        for thread in (0, 1):
            x = int(arrays["a"][block, thread])
            wanted.append(f"block {block}, thread {thread}: {x:5.1f}|{x}|{x & 0xFFFFFFFF:x}, 100 %")
        wanted.append("done")
    assert list(program.printed.lines[0]) == wanted
    (ptx,) = program.binary.ptx.values()
    assert "vprintf" in ptx
    assembled(program, tmp_path, "sm_90")


# Copies meanwhile, and what only a device does ---------------------------------------------------

FETCHED = launched(
    """%q = arith.muli %tx, %c2 : index
      %in = arith.cmpi ult, %q, %c50 : index
      scf.if %in {
        %t = nvgpu.device_async_copy %a[%bx, %q], %s[%q], 2, %c1
          : memref<2x50xi32> to memref<50xi32, #gpu.address_space<workgroup>>
        %g = nvgpu.device_async_create_group %t
        nvgpu.device_async_wait %g {numGroups = 0 : i32}
      }
      gpu.barrier
      %c49 = arith.constant 49 : index
      %other = arith.subi %c49, %tx : index
      %r = memref.load %s[%other] : memref<50xi32, #gpu.address_space<workgroup>>""",
    more="workgroup(%s : memref<50xi32, #gpu.address_space<workgroup>>)",
)


def test_copies_to_shared_memory(tmp_path: Path) -> None:
    """Of each two numbers the first, and a zero."""
    arrays = given()
    program = compiled(FETCHED, arrays)
    program.run(check=True)
    wanted = arrays["a"].copy()
    wanted[:, 1::2] = 0
    np.testing.assert_array_equal(program.arrays["b"], wanted[:, ::-1])
    (ptx,) = program.binary.ptx.values()
    assert "cp.async.ca.shared.global" in ptx
    assert "cp.async.wait_group" in ptx
    assembled(program, tmp_path, "sm_80", "sm_90")


PRODUCT = """func.func @f(%a: memref<32x4x2xf16>, %b: memref<32x2x2xf16>, %c: memref<32x2x2xf32>) {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %z = arith.constant 0.0 : f16
    %A = vector.transfer_read %a[%tx, %c0, %c0], %z {in_bounds = [true, true]}
      : memref<32x4x2xf16>, vector<4x2xf16>
    %B = vector.transfer_read %b[%tx, %c0, %c0], %z {in_bounds = [true, true]}
      : memref<32x2x2xf16>, vector<2x2xf16>
    %C = arith.constant dense<0.0> : vector<2x2xf32>
    %d = nvgpu.mma.sync (%A, %B, %C) {mmaShape = [16, 8, 16]}
      : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
    vector.transfer_write %d, %c[%tx, %c0, %c0] {in_bounds = [true, true]}
      : vector<2x2xf32>, memref<32x2x2xf32>
    gpu.terminator
  }
  return
}"""


def test_matrix_units_are_a_devices_alone(tmp_path: Path) -> None:
    """PTX has them; the emulated device and the reference say so, and compute nothing."""
    arrays = {
        "a": np.ones((32, 4, 2), np.float16), "b": np.ones((32, 2, 2), np.float16),
        "c": np.full((32, 2, 2), -7, np.float32),
    }  # fmt: skip
    program = compiled(PRODUCT, arrays)
    (ptx,) = program.binary.ptx.values()
    assert "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" in ptx
    assembled(program, tmp_path, "sm_80", "sm_90")
    message = r"nvgpu.mma.sync.* is what only a GPU does"
    with pytest.raises(AvialError, match=message):
        program.run()
    assert (arrays["c"] == -7).all()
    with pytest.raises(AvialError, match=message):
        program.run(check=True)
    with pytest.raises(AvialError, match=message) as caught:
        avial_lab.compile(PRODUCT, arrays=arrays, ranks=1, on="cpu").run(check=True)
    assert caught.value.span is not None
    assert caught.value.span.line == 13
