module {
  func.func @constant_index(%arg0: memref<17xf32>, %arg1: memref<1xf32>, %arg2: memref<17x4xf32>) {
    affine.for %arg3 = 0 to 17 {
      %0 = affine.load %arg0[%arg3] : memref<17xf32>
      affine.store %0, %arg1[0] : memref<1xf32>
    }
    affine.for %arg3 = 0 to 17 {
      %0 = affine.load %arg0[%arg3] : memref<17xf32>
      affine.store %0, %arg2[%arg3, 2] : memref<17x4xf32>
      %1 = affine.load %arg1[0] : memref<1xf32>
      affine.store %1, %arg2[3, 1] : memref<17x4xf32>
    }
    affine.for %arg3 = 0 to 4 {
      %0 = affine.load %arg2[3, %arg3] : memref<17x4xf32>
      affine.store %0, %arg2[0, %arg3] : memref<17x4xf32>
    }
    return
  }
}
