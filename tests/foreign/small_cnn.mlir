#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d3)>
module {
  memref.global "private" constant @__constant_3xf32 : memref<3xf32> = dense<[0.25, -0.125, 0.5]> {alignment = 64 : i64}
  func.func @forward(%arg0: memref<2x9x9x2xf32>, %arg1: memref<3x3x2x3xf32>, %arg2: memref<27x5xf32>, %arg3: memref<2x5xf32>) attributes {llvm.emit_c_interface} {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant -3.40282347E+38 : f32
    %0 = memref.get_global @__constant_3xf32 : memref<3xf32>
    %alloc = memref.alloc() {alignment = 64 : i64} : memref<2x7x7x3xf32>
    linalg.fill ins(%cst : f32) outs(%alloc : memref<2x7x7x3xf32>)
    linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%arg0, %arg1 : memref<2x9x9x2xf32>, memref<3x3x2x3xf32>) outs(%alloc : memref<2x7x7x3xf32>)
    linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%alloc, %0 : memref<2x7x7x3xf32>, memref<3xf32>) outs(%alloc : memref<2x7x7x3xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %1 = arith.addf %in, %in_3 : f32
      %2 = arith.cmpf ugt, %1, %cst : f32
      %3 = arith.select %2, %1, %cst : f32
      linalg.yield %3 : f32
    }
    %alloc_1 = memref.alloc() {alignment = 64 : i64} : memref<2x3x3x3xf32>
    linalg.fill ins(%cst_0 : f32) outs(%alloc_1 : memref<2x3x3x3xf32>)
    %alloc_2 = memref.alloc() : memref<3x3xf32>
    linalg.pooling_nhwc_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%alloc, %alloc_2 : memref<2x7x7x3xf32>, memref<3x3xf32>) outs(%alloc_1 : memref<2x3x3x3xf32>)
    memref.dealloc %alloc : memref<2x7x7x3xf32>
    memref.dealloc %alloc_2 : memref<3x3xf32>
    %collapse_shape = memref.collapse_shape %alloc_1 [[0], [1, 2, 3]] : memref<2x3x3x3xf32> into memref<2x27xf32>
    linalg.fill ins(%cst : f32) outs(%arg3 : memref<2x5xf32>)
    linalg.matmul ins(%collapse_shape, %arg2 : memref<2x27xf32>, memref<27x5xf32>) outs(%arg3 : memref<2x5xf32>)
    memref.dealloc %alloc_1 : memref<2x3x3x3xf32>
    return
  }
}
