#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d2)>
#map3 = affine_map<(d0, d1, d2) -> (d0, 0, d2)>
module {
  func.func @broadcast_rank3(%arg0: memref<?x6x8xf32>, %arg1: memref<6x8xf32>, %arg2: memref<8xf32>, %arg3: memref<?x1x8xf32>, %arg4: memref<?x6x8xf32>) {
    linalg.generic {indexing_maps = [#map, #map1, #map2, #map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %arg1, %arg2, %arg3 : memref<?x6x8xf32>, memref<6x8xf32>, memref<8xf32>, memref<?x1x8xf32>) outs(%arg4 : memref<?x6x8xf32>) {
    ^bb0(%in: f32, %in_0: f32, %in_1: f32, %in_2: f32, %out: f32):
      %0 = arith.addf %in, %in_0 : f32
      %1 = arith.mulf %0, %in_1 : f32
      %2 = arith.subf %1, %in_2 : f32
      linalg.yield %2 : f32
    }
    return
  }
}
