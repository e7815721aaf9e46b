// RUN: -p strict-arithmetic

// The module is marked, and nothing else changes.

// CHECK: module attributes {avial.strict} {
// CHECK-LABEL: func.func @add(
// CHECK-SAME: %[[A:.*]]: memref<4xf64>) {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 4 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]]] : memref<4xf64>
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[A_]], %[[A_]] : f64
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[P]], %[[A_]] : f64
// CHECK-NEXT: affine.store %[[S]], %[[A]][%[[I]]] : memref<4xf64>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @add(%A: memref<4xf64>) {
  affine.for %i = 0 to 4 {
    %a = affine.load %A[%i] : memref<4xf64>
    %p = arith.mulf %a, %a : f64
    %s = arith.addf %p, %a : f64
    affine.store %s, %A[%i] : memref<4xf64>
  }
  return
}

// -----

// Its other marks stay.

// CHECK: module attributes {avial.kept, avial.strict} {
// CHECK-NEXT: func.func @marked()
// CHECK-NEXT: return
module attributes {avial.kept} {
  func.func @marked() {
    return
  }
}
