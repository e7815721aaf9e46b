module {
  memref.global "private" @weights : memref<5xf32> = dense<[1.0, -2.0, 3.5, 0.25, 0.125]>
  func.func @two_serial_loops(%arg0: memref<?xf32>, %arg1: memref<?xf32>, %arg2: index, %arg3: memref<?xf32>) {
    %c0 = arith.constant 0 : index
    %0 = memref.get_global @weights : memref<5xf32>
    %dim = memref.dim %arg0, %c0 : memref<?xf32>
    affine.for %arg4 = 0 to %arg2 {
      affine.for %arg5 = 2 to affine_map<()[s0] -> (s0 - 2)>()[%dim] {
        %cst = arith.constant 0.000000e+00 : f32
        %1 = affine.for %arg6 = 0 to 5 iter_args(%arg7 = %cst) -> (f32) {
          %2 = affine.load %0[%arg6] : memref<5xf32>
          %3 = affine.load %arg0[%arg5 + %arg6 - 2] : memref<?xf32>
          %4 = arith.mulf %2, %3 : f32
          %5 = arith.addf %arg7, %4 : f32
          affine.yield %5 : f32
        }
        affine.store %1, %arg1[%arg5] : memref<?xf32>
      }
      memref.copy %arg1, %arg0 : memref<?xf32> to memref<?xf32>
    }
    affine.for %arg4 = 0 to %arg2 {
      affine.for %arg5 = 0 to affine_map<()[s0] -> (s0 floordiv 2)>()[%dim] {
        %1 = affine.load %arg0[%arg5 * 2] : memref<?xf32>
        %2 = affine.load %arg1[%arg5] : memref<?xf32>
        %3 = arith.subf %1, %2 : f32
        affine.store %3, %arg3[%arg5] : memref<?xf32>
      }
      affine.for %arg5 = 0 to affine_map<()[s0] -> (s0 floordiv 2)>()[%dim] {
        %1 = affine.load %arg3[%arg5] : memref<?xf32>
        affine.store %1, %arg0[%arg5 * 2] : memref<?xf32>
      }
    }
    return
  }
}
