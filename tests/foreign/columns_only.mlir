#map = affine_map<(d0) -> (d0)>
module {
  func.func @columns_only(%arg0: memref<12x?xf32>, %arg1: memref<12x12xf32>) {
    %c1 = arith.constant 1 : index
    %dim = memref.dim %arg0, %c1 : memref<12x?xf32>
    affine.for %arg2 = 1 to 12 {
      affine.for %arg3 = 0 to %dim {
        affine.for %arg4 = 0 to #map(%arg2) {
          %0 = affine.load %arg1[%arg2, %arg4] : memref<12x12xf32>
          %1 = affine.load %arg0[%arg4, %arg3] : memref<12x?xf32>
          %2 = arith.mulf %0, %1 : f32
          %3 = affine.load %arg0[%arg2, %arg3] : memref<12x?xf32>
          %4 = arith.subf %3, %2 : f32
          affine.store %4, %arg0[%arg2, %arg3] : memref<12x?xf32>
        }
      }
    }
    return
  }
}
