#map = affine_map<()[s0] -> (s0 - 1)>
module {
  func.func @nests_at_both_depths(%arg0: i32, %arg1: memref<?x10xf32>, %arg2: memref<?x10xf32>) {
    %cst = arith.constant 3.000000e-01 : f32
    %0 = arith.index_cast %arg0 : i32 to index
    affine.for %arg3 = 0 to 3 {
      affine.for %arg4 = 1 to #map()[%0] {
        affine.for %arg5 = 0 to 10 {
          %1 = affine.load %arg1[%arg4 - 1, %arg5] : memref<?x10xf32>
          %2 = affine.load %arg1[%arg4 + 1, %arg5] : memref<?x10xf32>
          %3 = arith.addf %1, %2 : f32
          %4 = arith.mulf %3, %cst : f32
          affine.store %4, %arg2[%arg4, %arg5] : memref<?x10xf32>
        }
      }
      affine.for %arg4 = 0 to 2 {
        affine.for %arg5 = 1 to #map()[%0] {
          affine.for %arg6 = 1 to 9 {
            %1 = affine.load %arg2[%arg5, %arg6 - 1] : memref<?x10xf32>
            %2 = affine.load %arg2[%arg5, %arg6 + 1] : memref<?x10xf32>
            %3 = arith.addf %1, %2 : f32
            affine.store %3, %arg1[%arg5, %arg6] : memref<?x10xf32>
          }
        }
        affine.for %arg5 = 1 to #map()[%0] {
          affine.for %arg6 = 1 to 9 {
            %1 = affine.load %arg1[%arg5, %arg6] : memref<?x10xf32>
            %2 = arith.mulf %1, %cst : f32
            affine.store %2, %arg2[%arg5, %arg6] : memref<?x10xf32>
          }
        }
      }
    }
    affine.for %arg3 = 0 to 2 {
      affine.for %arg4 = 0 to %0 {
        %1 = affine.load %arg2[%arg4, 9] : memref<?x10xf32>
        %2 = affine.load %arg1[%arg4, 0] : memref<?x10xf32>
        affine.store %1, %arg1[%arg4, 0] : memref<?x10xf32>
        affine.store %2, %arg2[%arg4, 9] : memref<?x10xf32>
      }
    }
    return
  }
}
