#map = affine_map<(d0)[s0] -> (4, -d0 + s0)>
module {
  func.func @tiled_subviews(%arg0: memref<?x10xf32>, %arg1: memref<10x7xf32>, %arg2: memref<?x7xf32>) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c7 = arith.constant 7 : index
    %cst = arith.constant 0.000000e+00 : f32
    %dim = memref.dim %arg0, %c0 : memref<?x10xf32>
    linalg.fill ins(%cst : f32) outs(%arg2 : memref<?x7xf32>)
    scf.parallel (%arg3, %arg4) = (%c0, %c0) to (%dim, %c7) step (%c4, %c4) {
      %0 = affine.min #map(%arg3)[%dim]
      %1 = affine.min #map(%arg4)[%c7]
      %subview = memref.subview %arg0[%arg3, 0] [%0, 10] [1, 1] : memref<?x10xf32> to memref<?x10xf32, strided<[10, 1], offset: ?>>
      %subview_0 = memref.subview %arg1[0, %arg4] [10, %1] [1, 1] : memref<10x7xf32> to memref<10x?xf32, strided<[7, 1], offset: ?>>
      %subview_1 = memref.subview %arg2[%arg3, %arg4] [%0, %1] [1, 1] : memref<?x7xf32> to memref<?x?xf32, strided<[7, 1], offset: ?>>
      linalg.matmul ins(%subview, %subview_0 : memref<?x10xf32, strided<[10, 1], offset: ?>>, memref<10x?xf32, strided<[7, 1], offset: ?>>) outs(%subview_1 : memref<?x?xf32, strided<[7, 1], offset: ?>>)
      scf.reduce
    }
    return
  }
}
