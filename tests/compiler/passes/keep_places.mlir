// RUN: -p linalg-generalize-named-ops,keep-places

// What stands for the named operation stands at its place; the addition of the text keeps its own.

// CHECK-LABEL: func.func @named
// CHECK: linalg.generic
// CHECK: math.exp %{{.*}} : f64 [[NAMED:-:[0-9]+:3]]
// CHECK: } [[NAMED]]
// CHECK: linalg.generic
// CHECK: arith.addf %{{.*}} : f64 -:{{[0-9]+}}:10
// PLACES
func.func @named(%A: memref<4xf64>, %B: memref<4xf64>) {
  linalg.exp ins(%A : memref<4xf64>) outs(%B : memref<4xf64>)
  linalg.generic {
    indexing_maps = [affine_map<(d0) -> (d0)>],
    iterator_types = ["parallel"]
  } outs(%B : memref<4xf64>) {
  ^bb0(%b: f64):
    %t = arith.addf %b, %b : f64
    linalg.yield %t : f64
  }
  return
}
