#map = affine_map<()[s0] -> (s0 - 1)>
module attributes {dlti.dl_spec = #dlti.dl_spec<i32 = dense<32> : vector<2xi64>, f64 = dense<64> : vector<2xi64>, "dlti.endianness" = "little", "dlti.stack_alignment" = 128 : i64>, llvm.data_layout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128", llvm.target_triple = "x86_64-unknown-linux-gnu", "polygeist.target-cpu" = "x86-64", "polygeist.target-features" = "+cx8,+fxsr,+mmx,+sse,+sse2,+x87", "polygeist.tune-cpu" = "generic"} {
  func.func @seidel_in_place(%arg0: i32, %arg1: i32, %arg2: memref<?x15xf64>) attributes {llvm.linkage = #llvm.linkage<external>} {
    %cst = arith.constant 5.000000e+00 : f64
    %0 = arith.index_cast %arg0 : i32 to index
    %1 = arith.index_cast %arg1 : i32 to index
    affine.for %arg3 = 0 to %0 {
      affine.for %arg4 = 1 to #map()[%1] {
        affine.for %arg5 = 1 to 14 {
          %2 = affine.load %arg2[%arg4 - 1, %arg5] : memref<?x15xf64>
          %3 = affine.load %arg2[%arg4, %arg5 - 1] : memref<?x15xf64>
          %4 = arith.addf %2, %3 : f64
          %5 = affine.load %arg2[%arg4, %arg5] : memref<?x15xf64>
          %6 = arith.addf %4, %5 : f64
          %7 = affine.load %arg2[%arg4, %arg5 + 1] : memref<?x15xf64>
          %8 = arith.addf %6, %7 : f64
          %9 = affine.load %arg2[%arg4 + 1, %arg5] : memref<?x15xf64>
          %10 = arith.addf %8, %9 : f64
          %11 = arith.divf %10, %cst : f64
          affine.store %11, %arg2[%arg4, %arg5] : memref<?x15xf64>
        }
      }
    }
    return
  }
}
