module {
  func.func @writes_nothing(%arg0: memref<10x10xf32>, %arg1: memref<10xf32>) {
    %cst = arith.constant 0.000000e+00 : f32
    affine.for %arg2 = 0 to 10 {
      affine.for %arg3 = 0 to 10 {
        %1 = affine.load %arg0[%arg2, %arg3] : memref<10x10xf32>
        %2 = arith.addf %1, %1 : f32
      }
    }
    %0 = affine.for %arg2 = 0 to 10 iter_args(%arg3 = %cst) -> (f32) {
      %1 = affine.load %arg1[%arg2] : memref<10xf32>
      %2 = arith.addf %arg3, %1 : f32
      affine.yield %2 : f32
    }
    affine.for %arg2 = 0 to 0 {
      affine.store %cst, %arg1[%arg2] : memref<10xf32>
    }
    return
  }
}
