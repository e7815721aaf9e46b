// RUN: -p jam-for-latency{rows=2}

// The row below is two columns behind: it needs the column to the right.

// CHECK-DAG: #[[BEHIND:.*]] = affine_map<(d0) -> (d0 - 2)>
// CHECK-LABEL: func.func @behind
// CHECK: affine.for %[[I:.*]] = 1 to 41 step 2 {
// CHECK: affine.for %[[J:.*]] = 3 to 61 {
// CHECK-NEXT: affine.load %{{.*}}[%[[I]], %[[J]] - 1]
// CHECK: affine.store %{{.*}}, %{{.*}}[%[[I]], %[[J]]]
// CHECK-NEXT: %[[LATE:.*]] = affine.apply #[[BEHIND]](%[[J]])
// CHECK-NEXT: affine.load %{{.*}}[%[[BELOW:.*]], %[[LATE]] - 1]
// CHECK: affine.store %{{.*}}, %{{.*}}[%[[BELOW]], %[[LATE]]]
func.func @behind(%A: memref<50x70xf64>) {
  affine.for %i = 1 to 41 {
    affine.for %j = 1 to 61 {
      %l = affine.load %A[%i, %j - 1] : memref<50x70xf64>
      %r = affine.load %A[%i - 1, %j + 1] : memref<50x70xf64>
      %s = arith.addf %l, %r : f64
      affine.store %s, %A[%i, %j] : memref<50x70xf64>
    }
  }
  return
}

// -----

// A row that waits for nothing of its own is for vectors.

// CHECK-LABEL: func.func @no_recurrence
// CHECK-NEXT: affine.for %{{.*}} = 1 to 41 {
func.func @no_recurrence(%A: memref<50x70xf64>) {
  affine.for %i = 1 to 41 {
    affine.for %j = 1 to 61 {
      %r = affine.load %A[%i - 1, %j + 1] : memref<50x70xf64>
      affine.store %r, %A[%i, %j] : memref<50x70xf64>
    }
  }
  return
}
