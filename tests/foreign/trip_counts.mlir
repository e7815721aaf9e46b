module {
  func.func @trip_counts(%arg0: memref<2xi32>, %arg1: memref<16xi32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c1_i32 = arith.constant 1 : i32
    %c15_i32 = arith.constant 15 : i32
    scf.for %arg2 = %c0 to %c4 step %c1 {
      %0 = memref.load %arg0[%c0] : memref<2xi32>
      %1 = arith.andi %0, %c15_i32 : i32
      %2 = arith.index_cast %1 : i32 to index
      scf.for %arg3 = %c0 to %2 step %c1 {
        %6 = memref.load %arg1[%arg3] : memref<16xi32>
        %7 = arith.addi %6, %c1_i32 : i32
        memref.store %7, %arg1[%arg3] : memref<16xi32>
        %8 = memref.load %arg0[%c1] : memref<2xi32>
        %9 = arith.addi %8, %6 : i32
        memref.store %9, %arg0[%c1] : memref<2xi32>
      }
      %3 = memref.load %arg0[%c1] : memref<2xi32>
      %4 = arith.andi %3, %c15_i32 : i32
      %5 = arith.index_cast %4 : i32 to index
      scf.for %arg3 = %c0 to %5 step %c1 {
        %6 = memref.load %arg1[%arg3] : memref<16xi32>
        %7 = arith.muli %6, %6 : i32
        %8 = arith.andi %7, %c15_i32 : i32
        memref.store %8, %arg1[%arg3] : memref<16xi32>
        %9 = memref.load %arg0[%c0] : memref<2xi32>
        %10 = arith.addi %9, %8 : i32
        memref.store %10, %arg0[%c0] : memref<2xi32>
      }
    }
    return
  }
}
