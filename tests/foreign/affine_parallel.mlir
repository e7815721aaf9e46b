#map = affine_map<(d0)[s0] -> (d0 + 4, s0)>
module {
  func.func @affine_parallel(%arg0: memref<?x14xf32>, %arg1: memref<?x14xf32>, %arg2: memref<3xf32>) {
    %c0 = arith.constant 0 : index
    %dim = memref.dim %arg0, %c0 : memref<?x14xf32>
    affine.parallel (%arg3) = (0) to (symbol(%dim)) step (4) {
      affine.parallel (%arg4) = (%arg3) to (min(%arg3 + 4, symbol(%dim))) {
        affine.parallel (%arg5) = (0) to (14) {
          %2 = affine.load %arg0[%arg4, -%arg5 + 13] : memref<?x14xf32>
          %3 = math.exp %2 : f32
          affine.store %3, %arg1[%arg4, %arg5] : memref<?x14xf32>
        }
      }
    }
    %0:2 = affine.parallel (%arg3, %arg4) = (0, 0) to (symbol(%dim), 14) reduce ("maximumf", "addf") -> (f32, f32) {
      %2 = affine.load %arg1[%arg3, %arg4] : memref<?x14xf32>
      affine.yield %2, %2 : f32, f32
    }
    affine.store %0#0, %arg2[0] : memref<3xf32>
    affine.store %0#1, %arg2[1] : memref<3xf32>
    affine.parallel (%arg3, %arg4) = (0, 0) to (symbol(%dim), 14) {
      %2 = affine.load %arg1[%arg3, %arg4] : memref<?x14xf32>
      %3 = arith.divf %2, %0#1 : f32
      affine.store %3, %arg1[%arg3, %arg4] : memref<?x14xf32>
    }
    return
  }
}
