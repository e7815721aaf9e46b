module {
  func.func @statements_as_calls(%arg0: f32, %arg1: f32, %arg2: memref<?x?xf32>, %arg3: memref<?x?xf32>, %arg4: memref<?x?xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %0 = memref.dim %arg2, %c0 : memref<?x?xf32>
    %1 = memref.dim %arg2, %c1 : memref<?x?xf32>
    %2 = memref.dim %arg3, %c1 : memref<?x?xf32>
    affine.for %arg5 = 0 to %0 {
      affine.for %arg6 = 0 to %1 {
        func.call @S0(%arg2, %arg5, %arg6, %arg1) : (memref<?x?xf32>, index, index, f32) -> ()
        affine.for %arg7 = 0 to %2 {
          func.call @S1(%arg2, %arg5, %arg6, %arg4, %arg7, %arg0, %arg3) : (memref<?x?xf32>, index, index, memref<?x?xf32>, index, f32, memref<?x?xf32>) -> ()
        }
      }
    }
    return
  }
  func.func private @S0(%arg0: memref<?x?xf32>, %arg1: index, %arg2: index, %arg3: f32) attributes {scop.stmt} {
    %0 = affine.load %arg0[symbol(%arg1), symbol(%arg2)] : memref<?x?xf32>
    %1 = arith.mulf %0, %arg3 : f32
    affine.store %1, %arg0[symbol(%arg1), symbol(%arg2)] : memref<?x?xf32>
    return
  }
  func.func private @S1(%arg0: memref<?x?xf32>, %arg1: index, %arg2: index, %arg3: memref<?x?xf32>, %arg4: index, %arg5: f32, %arg6: memref<?x?xf32>) attributes {scop.stmt} {
    %0 = affine.load %arg0[symbol(%arg1), symbol(%arg2)] : memref<?x?xf32>
    %1 = affine.load %arg6[symbol(%arg1), symbol(%arg4)] : memref<?x?xf32>
    %2 = arith.mulf %arg5, %1 : f32
    %3 = affine.load %arg3[symbol(%arg4), symbol(%arg2)] : memref<?x?xf32>
    %4 = arith.mulf %2, %3 : f32
    %5 = arith.addf %0, %4 : f32
    affine.store %5, %arg0[symbol(%arg1), symbol(%arg2)] : memref<?x?xf32>
    return
  }
}
