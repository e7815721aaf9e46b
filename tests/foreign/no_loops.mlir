module {
  func.func @no_loops(%arg0: memref<4xf32>, %arg1: memref<4xf32>, %arg2: f32) {
    %0 = affine.load %arg0[0] : memref<4xf32>
    %1 = affine.load %arg0[3] : memref<4xf32>
    %2 = arith.mulf %0, %arg2 : f32
    %3 = arith.addf %2, %1 : f32
    affine.store %3, %arg1[2] : memref<4xf32>
    %4 = arith.cmpf ogt, %3, %arg2 : f32
    scf.if %4 {
      affine.store %0, %arg0[1] : memref<4xf32>
    } else {
      affine.store %1, %arg1[0] : memref<4xf32>
    }
    return
  }
}
