module attributes {dlti.dl_spec = #dlti.dl_spec<i32 = dense<32> : vector<2xi64>, f64 = dense<64> : vector<2xi64>, "dlti.endianness" = "little", "dlti.stack_alignment" = 128 : i64>, llvm.data_layout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128", llvm.target_triple = "x86_64-unknown-linux-gnu", "polygeist.target-cpu" = "x86-64", "polygeist.target-features" = "+cx8,+fxsr,+mmx,+sse,+sse2,+x87", "polygeist.tune-cpu" = "generic"} {
  func.func @csr_power(%arg0: i32, %arg1: memref<?xi32>, %arg2: memref<?xi32>, %arg3: memref<?xf64>, %arg4: memref<?xf64>, %arg5: memref<?xf64>) attributes {llvm.linkage = #llvm.linkage<external>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c1_i32 = arith.constant 1 : i32
    %cst = arith.constant 0.000000e+00 : f64
    %cst_0 = arith.constant 2.500000e-01 : f64
    %0 = arith.index_cast %arg0 : i32 to index
    scf.for %arg6 = %c0 to %c3 step %c1 {
      scf.for %arg7 = %c0 to %0 step %c1 {
        %1 = memref.load %arg1[%arg7] : memref<?xi32>
        %2 = arith.index_cast %1 : i32 to index
        %3 = arith.addi %arg7, %c1 : index
        %4 = memref.load %arg1[%3] : memref<?xi32>
        %5 = arith.index_cast %4 : i32 to index
        %6 = scf.for %arg8 = %2 to %5 step %c1 iter_args(%arg9 = %cst) -> (f64) {
          %7 = memref.load %arg3[%arg8] : memref<?xf64>
          %8 = memref.load %arg2[%arg8] : memref<?xi32>
          %9 = arith.index_cast %8 : i32 to index
          %10 = memref.load %arg4[%9] : memref<?xf64>
          %11 = arith.mulf %7, %10 : f64
          %12 = arith.addf %arg9, %11 : f64
          scf.yield %12 : f64
        }
        memref.store %6, %arg5[%arg7] : memref<?xf64>
      }
      scf.for %arg7 = %c0 to %0 step %c1 {
        %1 = memref.load %arg5[%arg7] : memref<?xf64>
        %2 = arith.mulf %1, %cst_0 : f64
        memref.store %2, %arg4[%arg7] : memref<?xf64>
      }
    }
    return
  }
}
