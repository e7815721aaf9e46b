module {
  func.func @flat_memory(%arg0: memref<180xi32>, %arg1: memref<120xi32>, %arg2: memref<96xi32>) {
    %c0_i32 = arith.constant 0 : i32
    affine.for %arg3 = 0 to 12 {
      affine.for %arg4 = 0 to 8 {
        %0 = affine.for %arg5 = 0 to 15 iter_args(%arg6 = %c0_i32) -> (i32) {
          %1 = affine.load %arg0[%arg5 + %arg3 * 15] : memref<180xi32>
          %2 = affine.load %arg1[%arg4 + %arg5 * 8] : memref<120xi32>
          %3 = arith.muli %1, %2 : i32
          %4 = arith.addi %arg6, %3 : i32
          affine.yield %4 : i32
        }
        affine.store %0, %arg2[%arg4 + %arg3 * 8] : memref<96xi32>
      }
    }
    return
  }
}
