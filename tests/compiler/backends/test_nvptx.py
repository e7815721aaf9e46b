"""PTX of kernels: each by itself where one is bad, and whose kernels are whose."""

from __future__ import annotations

from avial_lab.compiler.backends.nvptx import belongs, compile_each

KERNEL = """
gpu.module @{name} [#nvvm.target<O = 3, chip = "sm_90">] {{
  gpu.func @{name}(%c: !llvm.ptr, %d: !llvm.ptr) kernel {{
    %i = gpu.thread_id x
    %k = arith.index_cast %i : index to i64
    %from = llvm.getelementptr %c[%k] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %to = llvm.getelementptr %d[%k] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %x = llvm.load %from : !llvm.ptr -> f32
    {extra}
    llvm.store %x, %to : f32, !llvm.ptr
    gpu.return
  }}
}}
"""


def modules(**extra: str) -> str:
    made = (KERNEL.format(name=name, extra=text) for name, text in extra.items())
    return f"module attributes {{gpu.container_module}} {{{''.join(made)}}}"


def test_each_is_a_module_of_its_own() -> None:
    ptx, failures = compile_each(modules(a_kernel="", b_kernel="").replace("sm_90", "sm_75", 1))
    assert list(ptx) == ["a_kernel", "b_kernel"]
    assert ".target sm_75" in ptx["a_kernel"]
    assert ".target sm_90" in ptx["b_kernel"]
    assert not failures


def test_one_bad_kernel_costs_only_its_own_ptx() -> None:
    """A load of an i1 aborts this MLIR; the other kernel still gets its PTX."""
    bad = "%m = memref.alloca() : memref<4xi1>\n    %b = memref.load %m[%i] : memref<4xi1>\n"
    bad += "    memref.store %b, %m[%i] : memref<4xi1>"
    ptx, failures = compile_each(modules(good="", bad=bad))
    assert list(ptx) == ["good"]
    assert list(failures) == ["bad"]
    assert failures["bad"].startswith("no PTX: ")


def test_text_that_mlir_opt_refuses() -> None:
    text = modules(a="%y = math.no_such %x : f32")
    ptx, failures = compile_each(text)
    assert not ptx
    assert failures["a"].startswith("no PTX: ")


def test_whose_kernels_are_whose() -> None:
    assert belongs("t_kernel", "t")
    assert belongs("t_kernel_2", "t")
    assert belongs("a_b_kernel", "a.b")  # as PTX has names
    assert not belongs("t_kernel", "t_kernel_2")
    assert not belongs("t_b_kernel", "t")


def test_a_number_with_its_sign_is_no_narrow_unsigned_one() -> None:
    """`upstream.py`: packed into pairs, they were cvt.rn.f16.u16, -1 would be 65535."""
    converted = "".join(
        f"""
    %o{k} = llvm.mlir.constant({k} : i64) : i64
    %p{k} = llvm.getelementptr %c[%o{k}] : (!llvm.ptr, i64) -> !llvm.ptr, i16
    %q{k} = llvm.getelementptr %d[%o{k}] : (!llvm.ptr, i64) -> !llvm.ptr, f16
    %l{k} = llvm.load %p{k} : !llvm.ptr -> i16
    %w{k} = arith.extsi %l{k} : i16 to i64
    %u{k} = arith.uitofp %w{k} : i64 to f16
    llvm.store %u{k}, %q{k} : f16, !llvm.ptr"""
        for k in range(2)
    )
    text = modules(wide=converted)
    for name in "cd":
        text = text.replace(f"%{name}: !llvm.ptr", f"%{name}: !llvm.ptr {{llvm.noalias}}")
    ptx, _ = compile_each(text)
    assert ptx["wide"].count("cvt.rn.f16.u64") == 2
