module attributes {dlti.dl_spec = #dlti.dl_spec<i32 = dense<32> : vector<2xi64>, f64 = dense<64> : vector<2xi64>, "dlti.endianness" = "little", "dlti.stack_alignment" = 128 : i64>, llvm.data_layout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128", llvm.target_triple = "x86_64-unknown-linux-gnu", "polygeist.target-cpu" = "x86-64", "polygeist.target-features" = "+cx8,+fxsr,+mmx,+sse,+sse2,+x87", "polygeist.tune-cpu" = "generic"} {
  func.func @loops_of_i32(%arg0: i32, %arg1: memref<?x16xi32>, %arg2: memref<?xi32>) attributes {llvm.linkage = #llvm.linkage<external>} {
    %c0_i32 = arith.constant 0 : i32
    %c1_i32 = arith.constant 1 : i32
    %c2_i32 = arith.constant 2 : i32
    %c16_i32 = arith.constant 16 : i32
    %c31_i32 = arith.constant 31 : i32
    scf.for %arg3 = %c0_i32 to %arg0 step %c1_i32  : i32 {
      %0 = arith.index_cast %arg3 : i32 to index
      scf.for %arg4 = %c1_i32 to %c16_i32 step %c2_i32  : i32 {
        %1 = arith.subi %arg4, %c1_i32 : i32
        %2 = arith.index_cast %1 : i32 to index
        %3 = arith.index_cast %arg4 : i32 to index
        %4 = memref.load %arg1[%0, %2] : memref<?x16xi32>
        %5 = memref.load %arg1[%0, %3] : memref<?x16xi32>
        %6 = arith.addi %4, %5 : i32
        %7 = arith.remsi %6, %c31_i32 : i32
        memref.store %7, %arg1[%0, %3] : memref<?x16xi32>
      }
      %8 = scf.for %arg4 = %c0_i32 to %c16_i32 step %c1_i32 iter_args(%arg5 = %arg3) -> (i32)  : i32 {
        %1 = arith.index_cast %arg4 : i32 to index
        %2 = memref.load %arg1[%0, %1] : memref<?x16xi32>
        %3 = arith.xori %arg5, %2 : i32
        scf.yield %3 : i32
      }
      memref.store %8, %arg2[%0] : memref<?xi32>
    }
    return
  }
}
