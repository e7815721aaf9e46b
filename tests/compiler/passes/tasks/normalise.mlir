// RUN: -p normalise

// The whole way: a call written out, a loop of i32, a sum in memory, a scf loop as an affine one.

// CHECK-LABEL: func.func @together(
// CHECK-SAME: %[[A:.*]]: memref<5x7xf64>, %[[Y:.*]]: memref<1xf64>) {
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f64
// CHECK-NEXT: %[[SUM:.*]] = memref.alloc() : memref<f64>
// CHECK-NEXT: memref.store %[[ZERO]], %[[SUM]][] : memref<f64>
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 5 {
// CHECK-NEXT: %[[SUM_0:.*]] = memref.load %[[SUM]][] : memref<f64>
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]], 3] : memref<5x7xf64>
// CHECK-NEXT: %[[NEXT:.*]] = arith.addf %[[SUM_0]], %[[A_]] : f64
// CHECK-NEXT: memref.store %[[NEXT]], %[[SUM]][] : memref<f64>
// CHECK-NEXT: }
// CHECK-NEXT: %[[S:.*]] = memref.load %[[SUM]][] : memref<f64>
// CHECK-NEXT: affine.store %[[S]], %[[Y]][0] : memref<1xf64>
// CHECK-NEXT: return
func.func @together(%A: memref<5x7xf64>, %y: memref<1xf64>) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  %s = scf.for %i = %c0 to %c5 step %c1 iter_args(%sum = %zero) -> (f64) : i32 {
    %k = arith.index_cast %i : i32 to index
    %a = func.call @element(%A, %k) : (memref<5x7xf64>, index) -> f64
    %next = arith.addf %sum, %a : f64
    scf.yield %next : f64
  }
  affine.store %s, %y[0] : memref<1xf64>
  return
}
func.func private @element(%A: memref<5x7xf64>, %k: index) -> f64 {
  %c3 = arith.constant 3 : index
  %a = memref.load %A[%k, %c3] : memref<5x7xf64>
  return %a : f64
}

// -----

// A named operation as loops, with what is parallel outside.

// CHECK-LABEL: func.func @columns(
// CHECK-SAME: %[[A:.*]]: memref<5x7xf64>, %[[X:.*]]: memref<5xf64>, %[[Y:.*]]: memref<7xf64>) {
// CHECK-NEXT: affine.for %[[ARG3:.*]] = 0 to 7 {
// CHECK-NEXT: affine.for %[[ARG4:.*]] = 0 to 5 {
// CHECK-NEXT: %[[V0:.*]] = affine.load %[[X]][%[[ARG4]]] : memref<5xf64>
// CHECK-NEXT: %[[V1:.*]] = affine.load %[[A]][%[[ARG4]], %[[ARG3]]] : memref<5x7xf64>
// CHECK-NEXT: %[[V2:.*]] = affine.load %[[Y]][%[[ARG3]]] : memref<7xf64>
// CHECK-NEXT: %[[V3:.*]] = arith.mulf %[[V0]], %[[V1]] : f64
// CHECK-NEXT: %[[V4:.*]] = arith.addf %[[V2]], %[[V3]] : f64
// CHECK-NEXT: affine.store %[[V4]], %[[Y]][%[[ARG3]]] : memref<7xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @columns(%A: memref<5x7xf64>, %x: memref<5xf64>, %y: memref<7xf64>) {
  linalg.vecmat ins(%x, %A : memref<5xf64>, memref<5x7xf64>) outs(%y : memref<7xf64>)
  return
}

// -----

// In this form already.

// CHECK-LABEL: func.func @leaves_loops(
// CHECK-SAME: %[[A:.*]]: memref<5x7xf64>, %[[X:.*]]: f64) {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 5 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 7 {
// CHECK-NEXT: affine.store %[[X]], %[[A]][%[[I]], %[[J]]] : memref<5x7xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_loops(%A: memref<5x7xf64>, %x: f64) {
  affine.for %i = 0 to 5 {
    affine.for %j = 0 to 7 {
      affine.store %x, %A[%i, %j] : memref<5x7xf64>
    }
  }
  return
}

// -----

// REFUSED: works on tensors, which could not be bufferized
func.func @tensors(%a: tensor<4xf32>) -> tensor<4xf32> {
  %b = linalg.exp ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) -> tensor<4xf32>
  return %b : tensor<4xf32>
}
