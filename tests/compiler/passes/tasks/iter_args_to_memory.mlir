// RUN: -p iter-args-to-memory

// A sum at control level lives in a cell that the function allocates.

// CHECK-LABEL: func.func @a_sum(
// CHECK-SAME: %[[A:.*]]: memref<5xf64>, %[[Y:.*]]: memref<1xf64>, %[[ZERO:.*]]: f64) {
// CHECK-NEXT: %[[SUM:.*]] = memref.alloc() : memref<f64>
// CHECK-NEXT: memref.store %[[ZERO]], %[[SUM]][] : memref<f64>
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 5 {
// CHECK-NEXT: %[[SUM_0:.*]] = memref.load %[[SUM]][] : memref<f64>
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]]] : memref<5xf64>
// CHECK-NEXT: %[[NEXT:.*]] = arith.addf %[[SUM_0]], %[[A_]] : f64
// CHECK-NEXT: memref.store %[[NEXT]], %[[SUM]][] : memref<f64>
// CHECK-NEXT: }
// CHECK-NEXT: %[[S:.*]] = memref.load %[[SUM]][] : memref<f64>
// CHECK-NEXT: affine.store %[[S]], %[[Y]][0] : memref<1xf64>
// CHECK-NEXT: return
func.func @a_sum(%A: memref<5xf64>, %y: memref<1xf64>, %zero: f64) {
  %s = affine.for %i = 0 to 5 iter_args(%sum = %zero) -> (f64) {
    %a = affine.load %A[%i] : memref<5xf64>
    %next = arith.addf %sum, %a : f64
    affine.yield %next : f64
  }
  affine.store %s, %y[0] : memref<1xf64>
  return
}

// -----

// What a loop only hands to the one inside, and gets back from it, lives in the same cell there.

// CHECK-LABEL: func.func @handed_through(
// CHECK-SAME: %[[A:.*]]: memref<5x7xf64>, %[[Y:.*]]: memref<1xf64>, %[[ZERO:.*]]: f64) {
// CHECK-NEXT: %[[SUM:.*]] = memref.alloc() : memref<f64>
// CHECK-NEXT: memref.store %[[ZERO]], %[[SUM]][] : memref<f64>
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 5 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 7 {
// CHECK-NEXT: %[[PART:.*]] = memref.load %[[SUM]][] : memref<f64>
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]], %[[J]]] : memref<5x7xf64>
// CHECK-NEXT: %[[NEXT:.*]] = arith.addf %[[PART]], %[[A_]] : f64
// CHECK-NEXT: memref.store %[[NEXT]], %[[SUM]][] : memref<f64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: %[[S:.*]] = memref.load %[[SUM]][] : memref<f64>
// CHECK-NEXT: affine.store %[[S]], %[[Y]][0] : memref<1xf64>
// CHECK-NEXT: return
func.func @handed_through(%A: memref<5x7xf64>, %y: memref<1xf64>, %zero: f64) {
  %s = affine.for %i = 0 to 5 iter_args(%sum = %zero) -> (f64) {
    %t = affine.for %j = 0 to 7 iter_args(%part = %sum) -> (f64) {
      %a = affine.load %A[%i, %j] : memref<5x7xf64>
      %next = arith.addf %part, %a : f64
      affine.yield %next : f64
    }
    affine.yield %t : f64
  }
  affine.store %s, %y[0] : memref<1xf64>
  return
}

// -----

// From an element and back to it: it stays in the element.

// CHECK-LABEL: func.func @in_its_own_element(
// CHECK-SAME: %[[A:.*]]: memref<5x7xf64>, %[[Y:.*]]: memref<7xf64>) {
// CHECK-NEXT: %[[FIRST:.*]] = affine.load %[[Y]][3] : memref<7xf64>
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 5 {
// CHECK-NEXT: %[[SUM:.*]] = affine.load %[[Y]][3] : memref<7xf64>
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]], 3] : memref<5x7xf64>
// CHECK-NEXT: %[[NEXT:.*]] = arith.addf %[[SUM]], %[[A_]] : f64
// CHECK-NEXT: affine.store %[[NEXT]], %[[Y]][3] : memref<7xf64>
// CHECK-NEXT: }
// CHECK-NEXT: %[[S:.*]] = affine.load %[[Y]][3] : memref<7xf64>
// CHECK-NEXT: affine.store %[[S]], %[[Y]][3] : memref<7xf64>
// CHECK-NEXT: return
func.func @in_its_own_element(%A: memref<5x7xf64>, %y: memref<7xf64>) {
  %first = affine.load %y[3] : memref<7xf64>
  %s = affine.for %i = 0 to 5 iter_args(%sum = %first) -> (f64) {
    %a = affine.load %A[%i, 3] : memref<5x7xf64>
    %next = arith.addf %sum, %a : f64
    affine.yield %next : f64
  }
  affine.store %s, %y[3] : memref<7xf64>
  return
}

// -----

// A count follows from scalars alone: every rank has it. The sum beside it does not.

// CHECK-LABEL: func.func @leaves_what_scalars_decide(
// CHECK-SAME: %[[A:.*]]: memref<99xf64>, %[[Y:.*]]: memref<1xf64>, %[[ZERO:.*]]: f64) {
// CHECK-NEXT: %[[SUM:.*]] = memref.alloc() : memref<f64>
// CHECK-NEXT: %[[C1:.*]] = arith.constant 1 : index
// CHECK-NEXT: memref.store %[[ZERO]], %[[SUM]][] : memref<f64>
// CHECK-NEXT: %[[R:.*]] = affine.for %[[I:.*]] = 0 to 5 iter_args(%[[STRIDE:.*]] = %[[C1]]) -> (index) {
// CHECK-NEXT: %[[SUM_1:.*]] = memref.load %[[SUM]][] : memref<f64>
// CHECK-NEXT: %[[A_:.*]] = memref.load %[[A]][%[[STRIDE]]] : memref<99xf64>
// CHECK-NEXT: %[[NEXT:.*]] = arith.addf %[[SUM_1]], %[[A_]] : f64
// CHECK-NEXT: %[[TWICE:.*]] = arith.addi %[[STRIDE]], %[[STRIDE]] : index
// CHECK-NEXT: memref.store %[[NEXT]], %[[SUM]][] : memref<f64>
// CHECK-NEXT: affine.yield %[[TWICE]] : index
// CHECK-NEXT: }
// CHECK-NEXT: %[[R_0:.*]] = memref.load %[[SUM]][] : memref<f64>
// CHECK-NEXT: memref.store %[[R_0]], %[[Y]][%[[C1]]] : memref<1xf64>
// CHECK-NEXT: return
func.func @leaves_what_scalars_decide(%A: memref<99xf64>, %y: memref<1xf64>, %zero: f64) {
  %c1 = arith.constant 1 : index
  %r:2 = affine.for %i = 0 to 5 iter_args(%stride = %c1, %sum = %zero) -> (index, f64) {
    %a = memref.load %A[%stride] : memref<99xf64>
    %next = arith.addf %sum, %a : f64
    %twice = arith.addi %stride, %stride : index
    affine.yield %twice, %next : index, f64
  }
  memref.store %r#1, %y[%c1] : memref<1xf64>
  return
}

// -----

// The condition's values as well as the body's.

// CHECK-LABEL: func.func @while(
// CHECK-SAME: %[[Y:.*]]: memref<1xf64>, %[[X:.*]]: f64, %[[LIMIT:.*]]: f64) {
// CHECK-NEXT: %[[F:.*]] = memref.alloc() : memref<f64>
// CHECK-NEXT: %[[E:.*]] = memref.alloc() : memref<f64>
// CHECK-NEXT: %[[C0:.*]] = arith.constant 0 : index
// CHECK-NEXT: memref.store %[[X]], %[[E]][] : memref<f64>
// CHECK-NEXT: scf.while : () -> () {
// CHECK-NEXT: %[[E_0:.*]] = memref.load %[[E]][] : memref<f64>
// CHECK-NEXT: %[[MORE:.*]] = arith.cmpf ogt, %[[E_0]], %[[LIMIT]] : f64
// CHECK-NEXT: memref.store %[[E_0]], %[[F]][] : memref<f64>
// CHECK-NEXT: scf.condition(%[[MORE]])
// CHECK-NEXT: } do {
// CHECK-NEXT: %[[F_0:.*]] = memref.load %[[F]][] : memref<f64>
// CHECK-NEXT: %[[A:.*]] = memref.load %[[Y]][%[[C0]]] : memref<1xf64>
// CHECK-NEXT: %[[G:.*]] = arith.mulf %[[F_0]], %[[A]] : f64
// CHECK-NEXT: memref.store %[[G]], %[[E]][] : memref<f64>
// CHECK-NEXT: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: %[[R:.*]] = memref.load %[[F]][] : memref<f64>
// CHECK-NEXT: memref.store %[[R]], %[[Y]][%[[C0]]] : memref<1xf64>
// CHECK-NEXT: return
func.func @while(%y: memref<1xf64>, %x: f64, %limit: f64) {
  %c0 = arith.constant 0 : index
  %r = scf.while (%e = %x) : (f64) -> f64 {
    %more = arith.cmpf ogt, %e, %limit : f64
    scf.condition(%more) %e : f64
  } do {
  ^bb0(%f: f64):
    %a = memref.load %y[%c0] : memref<1xf64>
    %g = arith.mulf %f, %a : f64
    scf.yield %g : f64
  }
  memref.store %r, %y[%c0] : memref<1xf64>
  return
}

// -----

// Reductions: of scf the region is written out, of affine the operation.

// CHECK-LABEL: func.func @reductions(
// CHECK-SAME: %[[A:.*]]: memref<5xf64>, %[[Y:.*]]: memref<2xf64>, %[[ZERO:.*]]: f64) {
// CHECK-NEXT: %[[S:.*]] = memref.alloc() : memref<f64>
// CHECK-NEXT: %[[M:.*]] = memref.alloc() : memref<f64>
// CHECK-NEXT: %[[C0:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[C1:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[C5:.*]] = arith.constant 5 : index
// CHECK-NEXT: memref.store %[[ZERO]], %[[S]][] : memref<f64>
// CHECK-NEXT: scf.parallel (%[[I:.*]]) = (%[[C0]]) to (%[[C5]]) step (%[[C1]]) {
// CHECK-NEXT: %[[A_:.*]] = memref.load %[[A]][%[[I]]] : memref<5xf64>
// CHECK-NEXT: %[[V0:.*]] = memref.load %[[S]][] : memref<f64>
// CHECK-NEXT: %[[BOTH:.*]] = arith.addf %[[V0]], %[[A_]] : f64
// CHECK-NEXT: memref.store %[[BOTH]], %[[S]][] : memref<f64>
// CHECK-NEXT: scf.reduce
// CHECK-NEXT: }
// CHECK-NEXT: %[[S_0:.*]] = memref.load %[[S]][] : memref<f64>
// CHECK-NEXT: memref.store %[[S_0]], %[[Y]][%[[C0]]] : memref<2xf64>
// CHECK-NEXT: %[[M_1:.*]] = arith.constant 0xFFF0000000000000 : f64
// CHECK-NEXT: memref.store %[[M_1]], %[[M]][] : memref<f64>
// CHECK-NEXT: affine.parallel (%[[I_:.*]]) = (0) to (5) {
// CHECK-NEXT: %[[A__:.*]] = affine.load %[[A]][%[[I_]]] : memref<5xf64>
// CHECK-NEXT: %[[V0_:.*]] = memref.load %[[M]][] : memref<f64>
// CHECK-NEXT: %[[V1:.*]] = arith.maximumf %[[V0_]], %[[A__]] : f64
// CHECK-NEXT: memref.store %[[V1]], %[[M]][] : memref<f64>
// CHECK-NEXT: }
// CHECK-NEXT: %[[M_2:.*]] = memref.load %[[M]][] : memref<f64>
// CHECK-NEXT: affine.store %[[M_2]], %[[Y]][1] : memref<2xf64>
// CHECK-NEXT: return
func.func @reductions(%A: memref<5xf64>, %y: memref<2xf64>, %zero: f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %s = scf.parallel (%i) = (%c0) to (%c5) step (%c1) init (%zero) -> f64 {
    %a = memref.load %A[%i] : memref<5xf64>
    scf.reduce(%a : f64) {
    ^bb0(%l: f64, %r: f64):
      %both = arith.addf %l, %r : f64
      scf.reduce.return %both : f64
    }
  }
  memref.store %s, %y[%c0] : memref<2xf64>
  %m = affine.parallel (%i) = (0) to (5) reduce ("maximumf") -> f64 {
    %a = affine.load %A[%i] : memref<5xf64>
    affine.yield %a : f64
  }
  affine.store %m, %y[1] : memref<2xf64>
  return
}

// -----

// Each iteration of %i is by itself: its sum stays in a register.

// CHECK-LABEL: func.func @leaves_sums_inside(
// CHECK-SAME: %[[A:.*]]: memref<5x7xf64>, %[[Y:.*]]: memref<5xf64>, %[[ZERO:.*]]: f64) {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 5 {
// CHECK-NEXT: %[[S:.*]] = affine.for %[[J:.*]] = 0 to 7 iter_args(%[[SUM:.*]] = %[[ZERO]]) -> (f64) {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]], %[[J]]] : memref<5x7xf64>
// CHECK-NEXT: %[[NEXT:.*]] = arith.addf %[[SUM]], %[[A_]] : f64
// CHECK-NEXT: affine.yield %[[NEXT]] : f64
// CHECK-NEXT: }
// CHECK-NEXT: affine.store %[[S]], %[[Y]][%[[I]]] : memref<5xf64>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_sums_inside(%A: memref<5x7xf64>, %y: memref<5xf64>, %zero: f64) {
  affine.for %i = 0 to 5 {
    %s = affine.for %j = 0 to 7 iter_args(%sum = %zero) -> (f64) {
      %a = affine.load %A[%i, %j] : memref<5x7xf64>
      %next = arith.addf %sum, %a : f64
      affine.yield %next : f64
    }
    affine.store %s, %y[%i] : memref<5xf64>
  }
  return
}
