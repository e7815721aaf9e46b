// RUN: -p drop-in

// A loop in time around two parallel nests: a converge with a replicate for each; each rank computes what it owns.

// CHECK-LABEL: func.func @heat
// CHECK: "avial.schedule"
// CHECK: %[[CPU:.*]] = "avial.target"() {arch = "cpu", name = "cpu"}
// CHECK: "avial.converge"() ({
// CHECK-NEXT: affine.for %{{.*}} = 0 to 10 {
// CHECK-NEXT: "avial.replicate"(%[[CPU]]
// CHECK-NEXT: affine.for %{{.*}} = 1 to 19 {
// CHECK: } {avial.split = 0 : i64}
// CHECK-NEXT: omp.terminator
// CHECK-NEXT: }) {avial.owned0 = array<i64: 0, 20>
// CHECK-SAME: "the rank that owns {{.*}} runs iteration {{.*}}"], name = "S1"
// CHECK: "avial.replicate"(%[[CPU]]
// CHECK: name = "S2"
// CHECK: avial.why = ["{{.*}} is written by an earlier iteration of
// CHECK-SAME: name = "loop1"
func.func @heat(%A: memref<20xf64> {avial.name = "A"}, %B: memref<20xf64> {avial.name = "B"}) {
  affine.for %t = 0 to 10 {
    affine.for %i = 1 to 19 {
      %l = affine.load %A[%i - 1] : memref<20xf64>
      %r = affine.load %A[%i + 1] : memref<20xf64>
      %s = arith.addf %l, %r : f64
      affine.store %s, %B[%i] : memref<20xf64>
    }
    affine.for %i = 1 to 19 {
      %v = affine.load %B[%i] : memref<20xf64>
      affine.store %v, %A[%i] : memref<20xf64>
    }
  }
  return
}

// -----

// What depends on the iteration before is a task, and says why.

// CHECK-LABEL: func.func @prefix
// CHECK: "avial.task"
// CHECK-NEXT: affine.for
// CHECK: avial.why = ["{{.*}} is written by the previous iteration of {{.*}}
func.func @prefix(%A: memref<20xf64> {avial.name = "A"}) {
  affine.for %i = 1 to 20 {
    %l = affine.load %A[%i - 1] : memref<20xf64>
    %v = affine.load %A[%i] : memref<20xf64>
    %s = arith.addf %l, %v : f64
    affine.store %s, %A[%i] : memref<20xf64>
  }
  return
}

// -----

// The least of all and its place are looked for in each rank's own memory, and nothing is rounded.

// CHECK-LABEL: func.func @least
// CHECK: "avial.replicate"(%{{.*}}, %[[A:.*]], %[[S:.*]], %[[S]], %[[AT:.*]]) ({
// CHECK-NOT: avial.reordered
// CHECK: avial.reduced = array<i64: 3, 4>, avial.why = ["iterations of i only look for the minimum of all: minimum of arg1 with arg2 over i",
// CHECK-NOT: avial.reordered
func.func @least(%A: memref<20xf64> {avial.name = "A"}, %s: memref<f64> {avial.name = "s"}, %at: memref<i32> {avial.name = "at"}) {
  affine.for %i = 0 to 20 {
    %v = affine.load %A[%i] : memref<20xf64>
    %0 = affine.load %s[] : memref<f64>
    %1 = arith.cmpf olt, %v, %0 : f64
    scf.if %1 {
      %2 = arith.index_cast %i : index to i32
      affine.store %v, %s[] : memref<f64>
      affine.store %2, %at[] : memref<i32>
    }
  }
  return
}

// -----

// A sum over all rows is added up in each rank's own memory: the operand that is written is the reduced one.

// CHECK-LABEL: func.func @total
// CHECK: "avial.replicate"(%{{.*}}, %[[A:.*]], %[[S:.*]], %[[S]]) ({
// CHECK: avial.owned0 = array<i64: 0, 20>, avial.reduced = array<i64: 3>, avial.reordered = 600 : i64
func.func @total(%A: memref<20x30xf64> {avial.name = "A"}, %s: memref<f64> {avial.name = "s"}) {
  affine.for %i = 0 to 20 {
    affine.for %j = 0 to 30 {
      %v = affine.load %A[%i, %j] : memref<20x30xf64>
      %o = affine.load %s[] : memref<f64>
      %n = arith.addf %o, %v : f64
      affine.store %n, %s[] : memref<f64>
    }
  }
  return
}

// -----

// The columns are independent, the rows are not: the inner loop is split, and its bounds are written down.

// CHECK-LABEL: func.func @columns
// CHECK: "avial.replicate"
// CHECK-NEXT: affine.for %{{.*}} = 1 to 20 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 30 {
// CHECK: } {avial.split = 0 : i64}
// CHECK-NEXT: }
// CHECK: avial.bounds0 = array<i64: 0, 30, 1>, avial.owned0 = array<i64: 0, 30>
func.func @columns(%A: memref<20x30xf64> {avial.name = "A"}) {
  affine.for %i = 1 to 20 {
    affine.for %j = 0 to 30 {
      %l = affine.load %A[%i - 1, %j] : memref<20x30xf64>
      %v = affine.load %A[%i, %j] : memref<20x30xf64>
      %n = arith.addf %l, %v : f64
      affine.store %n, %A[%i, %j] : memref<20x30xf64>
    }
  }
  return
}

// -----

// The extent of a view is a size for loops of affine in the function alone, not among the tasks.

// CHECK-LABEL: func.func @extents
// CHECK: memref.transpose
// CHECK: %[[ROWS:[^ ]*]] = memref.dim
// CHECK: "avial.schedule"
// CHECK: "avial.replicate"
// CHECK: "avial.replicate"
// CHECK-NEXT: affine.for %{{.*}} = 0 to %[[ROWS]] {
func.func @extents(%A: memref<8xf64> {avial.name = "A"}, %B: memref<6x4xf64> {avial.name = "B"}) {
  affine.for %i = 0 to 8 {
    %v = affine.load %A[%i] : memref<8xf64>
    %n = arith.addf %v, %v : f64
    affine.store %n, %A[%i] : memref<8xf64>
  }
  %zero = arith.constant 0 : index
  %open = memref.cast %B : memref<6x4xf64> to memref<6x?xf64, strided<[4, 1]>>
  %turned = memref.transpose %open (d0, d1) -> (d1, d0) : memref<6x?xf64, strided<[4, 1]>> to memref<?x6xf64, strided<[1, 4]>>
  %rows = memref.dim %turned, %zero : memref<?x6xf64, strided<[1, 4]>>
  affine.for %i = 0 to %rows {
    affine.for %j = 0 to 6 {
      %v = affine.load %turned[%i, %j] : memref<?x6xf64, strided<[1, 4]>>
      %n = arith.addf %v, %v : f64
      affine.store %n, %turned[%i, %j] : memref<?x6xf64, strided<[1, 4]>>
    }
  }
  return
}
