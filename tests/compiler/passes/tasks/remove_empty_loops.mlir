// RUN: -p remove-empty-loops

// Outer before inner.

// CHECK-LABEL: func.func @never(
// CHECK-SAME: %[[A:.*]]: memref<8xf64>, %[[X:.*]]: f64) {
// CHECK-NEXT: return
func.func @never(%A: memref<8xf64>, %x: f64) {
  affine.for %i = 3 to 2 {
    affine.for %j = 0 to min affine_map<(i) -> (i + 2, 1)>(%i) {
      affine.store %x, %A[%j] : memref<8xf64>
    }
  }
  affine.for %i = 5 to 5 {
    affine.store %x, %A[%i] : memref<8xf64>
  }
  return
}

// -----

// CHECK-LABEL: func.func @hands_out_what_it_began_with(
// CHECK-SAME: %[[A:.*]]: memref<8xf64>, %[[X:.*]]: f64) -> f64 {
// CHECK-NEXT: return %[[X]] : f64
func.func @hands_out_what_it_began_with(%A: memref<8xf64>, %x: f64) -> f64 {
  %s = affine.for %i = 2 to 2 iter_args(%t = %x) -> (f64) {
    %a = affine.load %A[%i] : memref<8xf64>
    %u = arith.addf %t, %a : f64
    affine.yield %u : f64
  }
  return %s : f64
}

// -----

// Sizes of arrays, and what is computed from them.

// CHECK-LABEL: func.func @sizes_that_are_known(
// CHECK-SAME: %[[A:.*]]: memref<8x4xf64>, %[[X:.*]]: f64) {
// CHECK-NEXT: %[[C1:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[C2:.*]] = arith.constant 2 : index
// CHECK-NEXT: %[[N:.*]] = memref.dim %[[A]], %[[C1]] : memref<8x4xf64>
// CHECK-NEXT: %[[M:.*]] = arith.subi %[[N]], %[[C2]] : index
// CHECK-NEXT: return
func.func @sizes_that_are_known(%A: memref<8x4xf64>, %x: f64) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %A, %c1 : memref<8x4xf64>
  %m = arith.subi %n, %c2 : index
  affine.for %i = 2 to %m {
    affine.store %x, %A[%i, 0] : memref<8x4xf64>
  }
  affine.for %i = max affine_map<()[n] -> (0, n)>()[%n] to min affine_map<()[n] -> (n - 1, 8)>()[%n] {
    affine.store %x, %A[%i, 1] : memref<8x4xf64>
  }
  return
}

// -----

// One iteration, a bound that nobody knows, and one that hangs on another loop.

// CHECK-DAG: #[[$MAP:.*]] = affine_map<(d0) -> (d0)>
// CHECK-LABEL: func.func @leaves_others(
// CHECK-SAME: %[[A:.*]]: memref<?xf64>, %[[X:.*]]: f64, %[[N:.*]]: index) {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 1 {
// CHECK-NEXT: affine.store %[[X]], %[[A]][%[[I]]] : memref<?xf64>
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[I_:.*]] = 3 to %[[N]] {
// CHECK-NEXT: affine.store %[[X]], %[[A]][%[[I_]]] : memref<?xf64>
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[I__:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %[[J:.*]] = 4 to #[[$MAP]](%[[I__]]) {
// CHECK-NEXT: affine.store %[[X]], %[[A]][%[[J]]] : memref<?xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_others(%A: memref<?xf64>, %x: f64, %n: index) {
  affine.for %i = 0 to 1 {
    affine.store %x, %A[%i] : memref<?xf64>
  }
  affine.for %i = 3 to %n {
    affine.store %x, %A[%i] : memref<?xf64>
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 4 to affine_map<(i) -> (i)>(%i) {
      affine.store %x, %A[%j] : memref<?xf64>
    }
  }
  return
}

// -----

// A sum that does not fit its type is no number to go by.

// CHECK-LABEL: func.func @leaves_what_goes_round(
// CHECK-SAME: %[[A:.*]]: memref<8xf64>, %[[X:.*]]: f64) {
// CHECK-NEXT: %[[BIG:.*]] = arith.constant 2000000000 : i32
// CHECK-NEXT: %[[SUM:.*]] = arith.addi %[[BIG]], %[[BIG]] : i32
// CHECK-NEXT: %[[N:.*]] = arith.index_cast %[[SUM]] : i32 to index
// CHECK-NEXT: affine.for %[[I:.*]] = %[[N]] to 0 {
// CHECK-NEXT: affine.store %[[X]], %[[A]][0] : memref<8xf64>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_what_goes_round(%A: memref<8xf64>, %x: f64) {
  %big = arith.constant 2000000000 : i32
  %sum = arith.addi %big, %big : i32
  %n = arith.index_cast %sum : i32 to index
  affine.for %i = %n to 0 {
    affine.store %x, %A[0] : memref<8xf64>
  }
  return
}
