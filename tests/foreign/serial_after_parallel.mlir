#map = affine_map<(d0) -> (d0 - 1)>
module {
  func.func @serial_after_parallel(%arg0: memref<23xf32>, %arg1: memref<23xf32>, %arg2: memref<23xf32>) {
    %cst = arith.constant 5.000000e-01 : f32
    affine.for %arg3 = 0 to 23 {
      %0 = affine.load %arg0[%arg3] : memref<23xf32>
      %1 = arith.mulf %0, %cst : f32
      affine.store %1, %arg1[%arg3] : memref<23xf32>
    }
    affine.for %arg3 = 1 to 23 {
      %0 = affine.apply #map(%arg3)
      %1 = affine.load %arg1[%0] : memref<23xf32>
      %2 = affine.load %arg1[%arg3] : memref<23xf32>
      %3 = arith.mulf %1, %cst : f32
      %4 = arith.addf %2, %3 : f32
      affine.store %4, %arg1[%arg3] : memref<23xf32>
    }
    affine.for %arg3 = 0 to 23 {
      %0 = affine.load %arg1[-%arg3 + 22] : memref<23xf32>
      affine.store %0, %arg2[%arg3] : memref<23xf32>
    }
    return
  }
}
