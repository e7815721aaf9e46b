// RUN: -p tile-time{widths=4x6}

// Two sweeps of a step: diamonds, whose second sweep is a slab further. Elements of a sweep are
// independent, and marked.

// CHECK-DAG: #[[AFTER:.*]] = affine_map<(d0, d1, d2) -> (1, d2 * 2 + d1 * -4 - 3, d2 * -2 + d1 * -6 + d0 * 6)>
// CHECK-DAG: #[[UNTIL:.*]] = affine_map<(d0, d1, d2) -> (99, d2 * 2 + d1 * -4 + 1, d2 * -2 + d1 * -6 + d0 * 6 + 6)>
// CHECK-LABEL: func.func @there_and_back
// CHECK: affine.for %[[WAVE:.*]] =
// CHECK-NEXT: affine.for %[[TILE:.*]] =
// CHECK-NEXT: affine.for %[[T:.*]] =
// CHECK-NEXT: affine.for %[[I:.*]] = max #[[AFTER]](%[[WAVE]], %[[TILE]], %[[T]]) to min #[[UNTIL]](%[[WAVE]], %[[TILE]], %[[T]]) {
// CHECK-NEXT: affine.load %{{.*}}[%[[I]] - 1]
// CHECK: affine.store %{{.*}}, %[[B:.*]][%[[I]]]
// CHECK-NEXT: } {avial.independent}
// CHECK: affine.for %[[K:.*]] = max
// CHECK-NEXT: affine.load %[[B]][%[[K]] - 1]
// CHECK: } {avial.parallel
func.func @there_and_back(%A: memref<100xf64>, %B: memref<100xf64>) attributes {avial.no_alias} {
  affine.for %t = 0 to 30 {
    affine.for %i = 1 to 99 {
      %l = affine.load %A[%i - 1] : memref<100xf64>
      %r = affine.load %A[%i + 1] : memref<100xf64>
      %s = arith.addf %l, %r : f64
      affine.store %s, %B[%i] : memref<100xf64>
    }
    affine.for %i = 1 to 99 {
      %l = affine.load %B[%i - 1] : memref<100xf64>
      %r = affine.load %B[%i + 1] : memref<100xf64>
      %s = arith.addf %l, %r : f64
      affine.store %s, %A[%i] : memref<100xf64>
    }
  }
  return
}

// -----

// Arrays that may be one.

// CHECK-LABEL: func.func @perhaps_one_array
// CHECK-NEXT: affine.for %{{.*}} = 0 to 30 {
// CHECK-NEXT: affine.for %{{.*}} = 1 to 99 {
func.func @perhaps_one_array(%A: memref<100xf64>, %B: memref<100xf64>) {
  affine.for %t = 0 to 30 {
    affine.for %i = 1 to 99 {
      %l = affine.load %A[%i - 1] : memref<100xf64>
      affine.store %l, %B[%i] : memref<100xf64>
    }
    affine.for %i = 1 to 99 {
      %l = affine.load %B[%i - 1] : memref<100xf64>
      affine.store %l, %A[%i] : memref<100xf64>
    }
  }
  return
}

// -----

// What wraps around has no face that never falls.

// CHECK-LABEL: func.func @around
// CHECK-NEXT: affine.for %{{.*}} = 0 to 30 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 100 {
func.func @around(%A: memref<100xf64>, %B: memref<100xf64>) attributes {avial.no_alias} {
  affine.for %t = 0 to 30 {
    affine.for %i = 0 to 100 {
      %l = affine.load %A[(%i + 99) mod 100] : memref<100xf64>
      affine.store %l, %B[%i] : memref<100xf64>
    }
    affine.for %i = 0 to 100 {
      %l = affine.load %B[%i] : memref<100xf64>
      affine.store %l, %A[%i] : memref<100xf64>
    }
  }
  return
}
