// RUN: -p privatise-scratch

// A row of the caller's to work on: each iteration gets its own, and the last one leaves its there.

// CHECK-DAG: #[[$MAP:.*]] = affine_map<() -> (100)>
// CHECK-LABEL: func.func @a_row_to_work_on(
// CHECK-SAME: %[[B:.*]]: memref<100x50xf64>, %[[S:.*]]: memref<50xf64>) {
// CHECK-NEXT: %[[V0:.*]] = affine.apply #[[$MAP]]()
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 100 {
// CHECK-NEXT: %[[C1:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[V1:.*]] = arith.addi %[[I]], %[[C1]] : index
// CHECK-NEXT: %[[V2:.*]] = arith.cmpi sge, %[[V1]], %[[V0]] : index
// CHECK-NEXT: %[[ALLOCA:.*]] = memref.alloca() : memref<50xf64>
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 50 {
// CHECK-NEXT: %[[B_:.*]] = affine.load %[[B]][%[[I]], %[[J]]] : memref<100x50xf64>
// CHECK-NEXT: affine.store %[[B_]], %[[ALLOCA]][%[[J]]] : memref<50xf64>
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[J_:.*]] = 1 to 50 {
// CHECK-NEXT: %[[S_:.*]] = affine.load %[[ALLOCA]][%[[J_]] - 1] : memref<50xf64>
// CHECK-NEXT: affine.store %[[S_]], %[[B]][%[[I]], %[[J_]]] : memref<100x50xf64>
// CHECK-NEXT: }
// CHECK-NEXT: scf.if %[[V2]] {
// CHECK-NEXT: %[[C0:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[C1_0:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[C50:.*]] = arith.constant 50 : index
// CHECK-NEXT: scf.for %[[ARG3:.*]] = %[[C0]] to %[[C50]] step %[[C1_0]] {
// CHECK-NEXT: %[[V3:.*]] = memref.load %[[ALLOCA]][%[[ARG3]]] {avial.access = "memref.copy"} : memref<50xf64>
// CHECK-NEXT: memref.store %[[V3]], %[[S]][%[[ARG3]]] {avial.access = "memref.copy"} : memref<50xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @a_row_to_work_on(%B: memref<100x50xf64>, %S: memref<50xf64>) {
  affine.for %i = 0 to 100 {
    affine.for %j = 0 to 50 {
      %b = affine.load %B[%i, %j] : memref<100x50xf64>
      affine.store %b, %S[%j] : memref<50xf64>
    }
    affine.for %j = 1 to 50 {
      %s = affine.load %S[%j - 1] : memref<50xf64>
      affine.store %s, %B[%i, %j] : memref<100x50xf64>
    }
  }
  return
}

// -----

// Not all of it is written: what stays is copied before, in the last iteration.

// CHECK-DAG: #[[$MAP:.*]] = affine_map<()[s0] -> (s0)>
// CHECK-LABEL: func.func @a_part_of_it(
// CHECK-SAME: %[[B:.*]]: memref<100x50xf64>, %[[S:.*]]: memref<50xf64>, %[[N:.*]]: index) {
// CHECK-NEXT: %[[V0:.*]] = affine.apply #[[$MAP]]()[%[[N]]]
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to %[[N]] {
// CHECK-NEXT: %[[C1:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[V1:.*]] = arith.addi %[[I]], %[[C1]] : index
// CHECK-NEXT: %[[V2:.*]] = arith.cmpi sge, %[[V1]], %[[V0]] : index
// CHECK-NEXT: %[[ALLOCA:.*]] = memref.alloca() : memref<50xf64>
// CHECK-NEXT: scf.if %[[V2]] {
// CHECK-NEXT: %[[C0:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[C1_0:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[C50:.*]] = arith.constant 50 : index
// CHECK-NEXT: scf.for %[[ARG4:.*]] = %[[C0]] to %[[C50]] step %[[C1_0]] {
// CHECK-NEXT: %[[V3:.*]] = memref.load %[[S]][%[[ARG4]]] {avial.access = "memref.copy"} : memref<50xf64>
// CHECK-NEXT: memref.store %[[V3]], %[[ALLOCA]][%[[ARG4]]] {avial.access = "memref.copy"} : memref<50xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[J:.*]] = 3 to 40 {
// CHECK-NEXT: %[[B_:.*]] = affine.load %[[B]][%[[I]], %[[J]]] : memref<100x50xf64>
// CHECK-NEXT: affine.store %[[B_]], %[[ALLOCA]][%[[J]]] : memref<50xf64>
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[J_:.*]] = 3 to 40 {
// CHECK-NEXT: %[[S_:.*]] = affine.load %[[ALLOCA]][%[[J_]]] : memref<50xf64>
// CHECK-NEXT: affine.store %[[S_]], %[[B]][%[[I]], %[[J_]] - 1] : memref<100x50xf64>
// CHECK-NEXT: }
// CHECK-NEXT: scf.if %[[V2]] {
// CHECK-NEXT: %[[C0_:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[C1_0_:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[C50_:.*]] = arith.constant 50 : index
// CHECK-NEXT: scf.for %[[ARG4_:.*]] = %[[C0_]] to %[[C50_]] step %[[C1_0_]] {
// CHECK-NEXT: %[[V3_:.*]] = memref.load %[[ALLOCA]][%[[ARG4_]]] {avial.access = "memref.copy"} : memref<50xf64>
// CHECK-NEXT: memref.store %[[V3_]], %[[S]][%[[ARG4_]]] {avial.access = "memref.copy"} : memref<50xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @a_part_of_it(%B: memref<100x50xf64>, %S: memref<50xf64>, %n: index) {
  affine.for %i = 0 to %n {
    affine.for %j = 3 to 40 {
      %b = affine.load %B[%i, %j] : memref<100x50xf64>
      affine.store %b, %S[%j] : memref<50xf64>
    }
    affine.for %j = 3 to 40 {
      %s = affine.load %S[%j] : memref<50xf64>
      affine.store %s, %B[%i, %j - 1] : memref<100x50xf64>
    }
  }
  return
}

// -----

// It hands values on: it is no scratch.

// CHECK-LABEL: func.func @leaves_what_is_read_first(
// CHECK-SAME: %[[B:.*]]: memref<100x50xf64>, %[[S:.*]]: memref<50xf64>) {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 100 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 50 {
// CHECK-NEXT: %[[S_:.*]] = affine.load %[[S]][%[[J]]] : memref<50xf64>
// CHECK-NEXT: affine.store %[[S_]], %[[B]][%[[I]], %[[J]]] : memref<100x50xf64>
// CHECK-NEXT: %[[B_:.*]] = affine.load %[[B]][%[[I]], %[[J]]] : memref<100x50xf64>
// CHECK-NEXT: affine.store %[[B_]], %[[S]][-%[[J]] + 49] : memref<50xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_what_is_read_first(%B: memref<100x50xf64>, %S: memref<50xf64>) {
  affine.for %i = 0 to 100 {
    affine.for %j = 0 to 50 {
      %s = affine.load %S[%j] : memref<50xf64>
      affine.store %s, %B[%i, %j] : memref<100x50xf64>
      %b = affine.load %B[%i, %j] : memref<100x50xf64>
      affine.store %b, %S[49 - %j] : memref<50xf64>
    }
  }
  return
}

// -----

// B keeps the loop whole in any case.

// CHECK-LABEL: func.func @leaves_other_chains(
// CHECK-SAME: %[[B:.*]]: memref<100x50xf64>, %[[S:.*]]: memref<50xf64>, %[[X:.*]]: f64) {
// CHECK-NEXT: affine.for %[[I:.*]] = 1 to 100 {
// CHECK-NEXT: affine.store %[[X]], %[[S]][0] : memref<50xf64>
// CHECK-NEXT: %[[S_:.*]] = affine.load %[[S]][0] : memref<50xf64>
// CHECK-NEXT: %[[B_:.*]] = affine.load %[[B]][%[[I]] - 1, 0] : memref<100x50xf64>
// CHECK-NEXT: %[[Y:.*]] = arith.addf %[[B_]], %[[S_]] : f64
// CHECK-NEXT: affine.store %[[Y]], %[[B]][%[[I]], 0] : memref<100x50xf64>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_other_chains(%B: memref<100x50xf64>, %S: memref<50xf64>, %x: f64) {
  affine.for %i = 1 to 100 {
    affine.store %x, %S[0] : memref<50xf64>
    %s = affine.load %S[0] : memref<50xf64>
    %b = affine.load %B[%i - 1, 0] : memref<100x50xf64>
    %y = arith.addf %b, %s : f64
    affine.store %y, %B[%i, 0] : memref<100x50xf64>
  }
  return
}
