module attributes {dlti.dl_spec = #dlti.dl_spec<i32 = dense<32> : vector<2xi64>, f64 = dense<64> : vector<2xi64>, "dlti.endianness" = "little", "dlti.stack_alignment" = 128 : i64>, llvm.data_layout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128", llvm.target_triple = "x86_64-unknown-linux-gnu", "polygeist.target-cpu" = "x86-64", "polygeist.target-features" = "+cx8,+fxsr,+mmx,+sse,+sse2,+x87", "polygeist.tune-cpu" = "generic"} {
  func.func @relax_until_small(%arg0: i32, %arg1: i32, %arg2: f64, %arg3: memref<?x12xf64>, %arg4: memref<?x12xf64>, %arg5: memref<?xi32>) attributes {llvm.linkage = #llvm.linkage<external>} {
    %c0 = arith.constant 0 : index
    %c0_i32 = arith.constant 0 : i32
    %c1_i32 = arith.constant 1 : i32
    %cst = arith.constant 0.000000e+00 : f64
    %cst_0 = arith.constant 2.500000e-01 : f64
    %cst_1 = arith.constant 1.000000e+03 : f64
    %0 = arith.index_cast %arg0 : i32 to index
    %1:2 = scf.while (%arg6 = %c0_i32, %arg7 = %cst_1) : (i32, f64) -> (i32, f64) {
      %2 = arith.cmpi slt, %arg6, %arg1 : i32
      %3 = arith.cmpf ogt, %arg7, %arg2 : f64
      %4 = arith.andi %2, %3 : i1
      scf.condition(%4) %arg6, %arg7 : i32, f64
    } do {
    ^bb0(%arg6: i32, %arg7: f64):
      affine.for %arg8 = 1 to affine_map<()[s0] -> (s0 - 1)>()[%0] {
        affine.for %arg9 = 1 to 11 {
          %4 = affine.load %arg3[%arg8 - 1, %arg9] : memref<?x12xf64>
          %5 = affine.load %arg3[%arg8 + 1, %arg9] : memref<?x12xf64>
          %6 = affine.load %arg3[%arg8, %arg9 - 1] : memref<?x12xf64>
          %7 = affine.load %arg3[%arg8, %arg9 + 1] : memref<?x12xf64>
          %8 = arith.addf %4, %5 : f64
          %9 = arith.addf %6, %7 : f64
          %10 = arith.addf %8, %9 : f64
          %11 = arith.mulf %10, %cst_0 : f64
          affine.store %11, %arg4[%arg8, %arg9] : memref<?x12xf64>
        }
      }
      %2 = affine.for %arg8 = 1 to affine_map<()[s0] -> (s0 - 1)>()[%0] iter_args(%arg10 = %cst) -> (f64) {
        %4 = affine.for %arg9 = 1 to 11 iter_args(%arg11 = %arg10) -> (f64) {
          %5 = affine.load %arg4[%arg8, %arg9] : memref<?x12xf64>
          %6 = affine.load %arg3[%arg8, %arg9] : memref<?x12xf64>
          %7 = arith.subf %5, %6 : f64
          %8 = math.absf %7 : f64
          %9 = arith.maximumf %arg11, %8 : f64
          affine.store %5, %arg3[%arg8, %arg9] : memref<?x12xf64>
          affine.yield %9 : f64
        }
        affine.yield %4 : f64
      }
      %3 = arith.addi %arg6, %c1_i32 : i32
      scf.yield %3, %2 : i32, f64
    }
    memref.store %1#0, %arg5[%c0] : memref<?xi32>
    return
  }
}
