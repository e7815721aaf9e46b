module attributes {dlti.dl_spec = #dlti.dl_spec<i32 = dense<32> : vector<2xi64>, f64 = dense<64> : vector<2xi64>, "dlti.endianness" = "little", "dlti.stack_alignment" = 128 : i64>, llvm.data_layout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128", llvm.target_triple = "x86_64-unknown-linux-gnu", "polygeist.target-cpu" = "x86-64", "polygeist.target-features" = "+cx8,+fxsr,+mmx,+sse,+sse2,+x87", "polygeist.tune-cpu" = "generic"} {
  func.func @histogram(%arg0: memref<?xi32>, %arg1: memref<?xi32>, %arg2: i32, %arg3: memref<?xi32>) attributes {llvm.linkage = #llvm.linkage<external>} {
    %c1_i32 = arith.constant 1 : i32
    %c7_i32 = arith.constant 7 : i32
    %c0_i32 = arith.constant 0 : i32
    %0 = arith.index_cast %arg2 : i32 to index
    affine.for %arg4 = 0 to 8 {
      affine.store %c0_i32, %arg0[%arg4] : memref<?xi32>
    }
    affine.for %arg4 = 0 to %0 {
      %1 = affine.load %arg1[%arg4] : memref<?xi32>
      %2 = arith.andi %1, %c7_i32 : i32
      %3 = arith.index_cast %2 : i32 to index
      %4 = memref.load %arg0[%3] : memref<?xi32>
      %5 = arith.addi %4, %c1_i32 : i32
      memref.store %5, %arg0[%3] : memref<?xi32>
    }
    affine.for %arg4 = 0 to %0 {
      %1 = affine.load %arg1[%arg4] : memref<?xi32>
      %2 = arith.andi %1, %c7_i32 : i32
      %3 = arith.index_cast %2 : i32 to index
      %4 = memref.load %arg0[%3] : memref<?xi32>
      affine.store %4, %arg3[%arg4] : memref<?xi32>
    }
    return
  }
}
