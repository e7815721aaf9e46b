// RUN: -p linalg-to-loops

// Sizes are symbols to affine loops.

// CHECK-LABEL: func.func @whole(
// CHECK-SAME: %[[A:.*]]: memref<4x?xf64>, %[[X:.*]]: f64) {
// CHECK-NEXT: %[[C1:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[DIM:.*]] = memref.dim %[[A]], %[[C1]] : memref<4x?xf64>
// CHECK-NEXT: affine.for %[[ARG2:.*]] = 0 to 4 {
// CHECK-NEXT: affine.for %[[ARG3:.*]] = 0 to %[[DIM]] {
// CHECK-NEXT: affine.store %[[X]], %[[A]][%[[ARG2]], %[[ARG3]]] : memref<4x?xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @whole(%A: memref<4x?xf64>, %x: f64) {
  linalg.generic {
    indexing_maps = [affine_map<(d0, d1) -> ()>, affine_map<(d0, d1) -> (d0, d1)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%x : f64) outs(%A : memref<4x?xf64>) {
  ^bb0(%v: f64, %a: f64):
    linalg.yield %v : f64
  }
  return
}

// -----

// How large the window is hangs on the loop around: affine could not say it.

// CHECK-LABEL: func.func @window_of_a_loop(
// CHECK-SAME: %[[A:.*]]: memref<9xf64>, %[[X:.*]]: f64, %[[N:.*]]: index) {
// CHECK-NEXT: %[[C0:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[C1:.*]] = arith.constant 1 : index
// CHECK-NEXT: scf.for %[[I:.*]] = %[[C0]] to %[[N]] step %[[C1]] {
// CHECK-NEXT: %[[WINDOW:.*]] = memref.subview %[[A]][%[[I]]] [%[[I]]] [1] : memref<9xf64> to memref<?xf64, strided<[1], offset: ?>>
// CHECK-NEXT: scf.for %[[ARG4:.*]] = %[[C0]] to %[[I]] step %[[C1]] {
// CHECK-NEXT: memref.store %[[X]], %[[WINDOW]][%[[ARG4]]] : memref<?xf64, strided<[1], offset: ?>>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @window_of_a_loop(%A: memref<9xf64>, %x: f64, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %window = memref.subview %A[%i] [%i] [1] : memref<9xf64> to memref<?xf64, strided<[1], offset: ?>>
    linalg.generic {
      indexing_maps = [affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>],
      iterator_types = ["parallel"]
    } ins(%x : f64) outs(%window : memref<?xf64, strided<[1], offset: ?>>) {
    ^bb0(%v: f64, %a: f64):
      linalg.yield %v : f64
    }
  }
  return
}
