module attributes {dlti.dl_spec = #dlti.dl_spec<i32 = dense<32> : vector<2xi64>, f64 = dense<64> : vector<2xi64>, "dlti.endianness" = "little", "dlti.stack_alignment" = 128 : i64>, llvm.data_layout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128", llvm.target_triple = "x86_64-unknown-linux-gnu", "polygeist.target-cpu" = "x86-64", "polygeist.target-features" = "+cx8,+fxsr,+mmx,+sse,+sse2,+x87", "polygeist.tune-cpu" = "generic"} {
  func.func @argmin(%arg0: i32, %arg1: memref<?xf64>, %arg2: memref<?xi32>, %arg3: memref<?xf64>) attributes {llvm.linkage = #llvm.linkage<external>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c0_i32 = arith.constant 0 : i32
    %0 = arith.index_cast %arg0 : i32 to index
    %1 = memref.load %arg1[%c0] : memref<?xf64>
    %2:2 = scf.for %arg4 = %c1 to %0 step %c1 iter_args(%arg5 = %1, %arg6 = %c0_i32) -> (f64, i32) {
      %3 = memref.load %arg1[%arg4] : memref<?xf64>
      %4 = arith.cmpf olt, %3, %arg5 : f64
      %5 = arith.select %4, %3, %arg5 : f64
      %6 = arith.index_cast %arg4 : index to i32
      %7 = arith.select %4, %6, %arg6 : i32
      scf.yield %5, %7 : f64, i32
    }
    memref.store %2#1, %arg2[%c0] : memref<?xi32>
    scf.for %arg4 = %c0 to %0 step %c1 {
      %3 = memref.load %arg1[%arg4] : memref<?xf64>
      %4 = arith.subf %3, %2#0 : f64
      memref.store %4, %arg3[%arg4] : memref<?xf64>
    }
    return
  }
}
