// RUN: -p unroll-short

// Weights around an element that the nest changes: no loop inside is left, and what one iteration
// hands on the next one takes.

// CHECK-LABEL: func.func @neighbours
// CHECK: affine.for %[[J:.*]] = 1 to 61 {
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[A0:.*]] = affine.load %[[A:.*]][%[[J]] + %[[ZERO]] - 1]
// CHECK-NEXT: %[[S0:.*]] = arith.addf %{{.*}}, %[[A0]]
// CHECK-NEXT: %[[TWO:.*]] = arith.constant 2 : index
// CHECK-NEXT: %[[A2:.*]] = affine.load %[[A]][%[[J]] + %[[TWO]] - 1]
// CHECK-NEXT: %[[S2:.*]] = arith.addf %[[S0]], %[[A2]]
// CHECK-NEXT: affine.store %[[S2]], %[[A]][%[[J]]]
func.func @neighbours(%A: memref<70xf64>, %zero: f64) {
  affine.for %j = 1 to 61 {
    %sum = affine.for %q = 0 to 3 step 2 iter_args(%s = %zero) -> (f64) {
      %a = affine.load %A[%j + %q - 1] : memref<70xf64>
      %t = arith.addf %s, %a : f64
      affine.yield %t : f64
    }
    affine.store %sum, %A[%j] : memref<70xf64>
  }
  return
}

// -----

// CHECK-LABEL: func.func @of_an_array_that_stays
// CHECK: affine.for %{{.*}} = 0 to 3 {
func.func @of_an_array_that_stays(%A: memref<70xf64>, %B: memref<70xf64>) {
  affine.for %j = 1 to 61 {
    affine.for %q = 0 to 3 {
      %a = affine.load %A[%j + %q - 1] : memref<70xf64>
      %b = affine.load %B[%j] : memref<70xf64>
      %s = arith.addf %a, %b : f64
      affine.store %s, %B[%j] : memref<70xf64>
    }
  }
  return
}

// -----

// CHECK-LABEL: func.func @to_different_elements
// CHECK: affine.for %{{.*}} = 0 to 3 {
func.func @to_different_elements(%A: memref<70x70xf64>) {
  affine.for %j = 1 to 61 {
    affine.for %q = 0 to 3 {
      %a = affine.load %A[%j, %q] : memref<70x70xf64>
      affine.store %a, %A[%j - 1, %q] : memref<70x70xf64>
    }
  }
  return
}

// -----

// CHECK-LABEL: func.func @many
// CHECK: affine.for %{{.*}} = 0 to 6 {
func.func @many(%A: memref<70xf64>) {
  affine.for %j = 1 to 61 {
    affine.for %q = 0 to 6 {
      %a = affine.load %A[%j + %q] : memref<70xf64>
      affine.store %a, %A[%j] : memref<70xf64>
    }
  }
  return
}

// -----

// CHECK-LABEL: func.func @nobody_knows_how_many
// CHECK: affine.for %{{.*}} = 0 to %{{.*}} {
func.func @nobody_knows_how_many(%A: memref<70xf64>, %n: index) {
  affine.for %j = 1 to 61 {
    affine.for %q = 0 to %n {
      %a = affine.load %A[%j + %q] : memref<70xf64>
      affine.store %a, %A[%j] : memref<70xf64>
    }
  }
  return
}

// -----

// CHECK-LABEL: func.func @outermost
// CHECK-NEXT: affine.for %{{.*}} = 0 to 3 {
func.func @outermost(%A: memref<70xf64>) {
  affine.for %q = 0 to 3 {
    %a = affine.load %A[%q] : memref<70xf64>
    affine.store %a, %A[5] : memref<70xf64>
  }
  return
}
