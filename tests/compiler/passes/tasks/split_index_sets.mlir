// RUN: -p split-index-sets

// Row 7, which all others are made from, stands alone: the rows before and after it can be divided.

// CHECK-DAG: #[[$MAP:.*]] = affine_map<() -> (7)>
// CHECK-DAG: #[[$MAP1:.*]] = affine_map<() -> (8)>
// CHECK-DAG: #[[$MAP2:.*]] = affine_map<(d0) -> (20, d0)>
// CHECK-DAG: #[[$MAP3:.*]] = affine_map<(d0) -> (0, d0)>
// CHECK-LABEL: func.func @from_one_row(
// CHECK-SAME: %[[B:.*]]: memref<20x20xf64>) {
// CHECK-NEXT: %[[V0:.*]] = affine.apply #[[$MAP]]()
// CHECK-NEXT: %[[V1:.*]] = affine.apply #[[$MAP1]]()
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to min #[[$MAP2]](%[[V0]]) {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 20 {
// CHECK-NEXT: %[[P:.*]] = affine.load %[[B]][7, %[[J]]] : memref<20x20xf64>
// CHECK-NEXT: %[[Q:.*]] = affine.load %[[B]][%[[I]], 3] : memref<20x20xf64>
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[P]], %[[Q]] : f64
// CHECK-NEXT: affine.store %[[S]], %[[B]][%[[I]], %[[J]]] : memref<20x20xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[I_:.*]] = max #[[$MAP3]](%[[V0]]) to min #[[$MAP2]](%[[V1]]) {
// CHECK-NEXT: affine.for %[[J_:.*]] = 0 to 20 {
// CHECK-NEXT: %[[P_:.*]] = affine.load %[[B]][7, %[[J_]]] : memref<20x20xf64>
// CHECK-NEXT: %[[Q_:.*]] = affine.load %[[B]][%[[I_]], 3] : memref<20x20xf64>
// CHECK-NEXT: %[[S_:.*]] = arith.addf %[[P_]], %[[Q_]] : f64
// CHECK-NEXT: affine.store %[[S_]], %[[B]][%[[I_]], %[[J_]]] : memref<20x20xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[I__:.*]] = max #[[$MAP3]](%[[V1]]) to 20 {
// CHECK-NEXT: affine.for %[[J__:.*]] = 0 to 20 {
// CHECK-NEXT: %[[P__:.*]] = affine.load %[[B]][7, %[[J__]]] : memref<20x20xf64>
// CHECK-NEXT: %[[Q__:.*]] = affine.load %[[B]][%[[I__]], 3] : memref<20x20xf64>
// CHECK-NEXT: %[[S__:.*]] = arith.addf %[[P__]], %[[Q__]] : f64
// CHECK-NEXT: affine.store %[[S__]], %[[B]][%[[I__]], %[[J__]]] : memref<20x20xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @from_one_row(%B: memref<20x20xf64>) {
  affine.for %i = 0 to 20 {
    affine.for %j = 0 to 20 {
      %p = affine.load %B[7, %j] : memref<20x20xf64>
      %q = affine.load %B[%i, 3] : memref<20x20xf64>
      %s = arith.addf %p, %q : f64
      affine.store %s, %B[%i, %j] : memref<20x20xf64>
    }
  }
  return
}

// -----

// Which row it is, is known when the program runs; an scf loop is cut by the least and the
// greatest.

// CHECK-DAG: #[[$MAP:.*]] = affine_map<(d0) -> (d0)>
// CHECK-DAG: #[[$MAP1:.*]] = affine_map<(d0) -> (d0 + 1)>
// CHECK-LABEL: func.func @from_a_row_that_is_given(
// CHECK-SAME: %[[B:.*]]: memref<20x20xf64>, %[[N:.*]]: index) {
// CHECK-NEXT: %[[C0:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[C1:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[C20:.*]] = arith.constant 20 : index
// CHECK-NEXT: %[[V0:.*]] = affine.apply #[[$MAP]](%[[N]])
// CHECK-NEXT: %[[V1:.*]] = affine.apply #[[$MAP1]](%[[N]])
// CHECK-NEXT: %[[V2:.*]] = arith.minsi %[[C20]], %[[V0]] : index
// CHECK-NEXT: scf.for %[[I:.*]] = %[[C0]] to %[[V2]] step %[[C1]] {
// CHECK-NEXT: scf.for %[[J:.*]] = %[[C0]] to %[[C20]] step %[[C1]] {
// CHECK-NEXT: %[[P:.*]] = memref.load %[[B]][%[[N]], %[[J]]] : memref<20x20xf64>
// CHECK-NEXT: %[[Q:.*]] = memref.load %[[B]][%[[I]], %[[N]]] : memref<20x20xf64>
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[P]], %[[Q]] : f64
// CHECK-NEXT: memref.store %[[S]], %[[B]][%[[I]], %[[J]]] : memref<20x20xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: %[[V3:.*]] = arith.maxsi %[[C0]], %[[V0]] : index
// CHECK-NEXT: %[[V4:.*]] = arith.minsi %[[C20]], %[[V1]] : index
// CHECK-NEXT: scf.for %[[I_:.*]] = %[[V3]] to %[[V4]] step %[[C1]] {
// CHECK-NEXT: scf.for %[[J_:.*]] = %[[C0]] to %[[C20]] step %[[C1]] {
// CHECK-NEXT: %[[P_:.*]] = memref.load %[[B]][%[[N]], %[[J_]]] : memref<20x20xf64>
// CHECK-NEXT: %[[Q_:.*]] = memref.load %[[B]][%[[I_]], %[[N]]] : memref<20x20xf64>
// CHECK-NEXT: %[[S_:.*]] = arith.addf %[[P_]], %[[Q_]] : f64
// CHECK-NEXT: memref.store %[[S_]], %[[B]][%[[I_]], %[[J_]]] : memref<20x20xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: %[[V5:.*]] = arith.maxsi %[[C0]], %[[V1]] : index
// CHECK-NEXT: scf.for %[[I__:.*]] = %[[V5]] to %[[C20]] step %[[C1]] {
// CHECK-NEXT: scf.for %[[J__:.*]] = %[[C0]] to %[[C20]] step %[[C1]] {
// CHECK-NEXT: %[[P__:.*]] = memref.load %[[B]][%[[N]], %[[J__]]] : memref<20x20xf64>
// CHECK-NEXT: %[[Q__:.*]] = memref.load %[[B]][%[[I__]], %[[N]]] : memref<20x20xf64>
// CHECK-NEXT: %[[S__:.*]] = arith.addf %[[P__]], %[[Q__]] : f64
// CHECK-NEXT: memref.store %[[S__]], %[[B]][%[[I__]], %[[J__]]] : memref<20x20xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @from_a_row_that_is_given(%B: memref<20x20xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c20 = arith.constant 20 : index
  scf.for %i = %c0 to %c20 step %c1 {
    scf.for %j = %c0 to %c20 step %c1 {
      %p = memref.load %B[%n, %j] : memref<20x20xf64>
      %q = memref.load %B[%i, %n] : memref<20x20xf64>
      %s = arith.addf %p, %q : f64
      memref.store %s, %B[%i, %j] : memref<20x20xf64>
    }
  }
  return
}

// -----

// Every row needs the one before: no cut helps.

// CHECK-LABEL: func.func @leaves_chains(
// CHECK-SAME: %[[B:.*]]: memref<20x20xf64>) {
// CHECK-NEXT: affine.for %[[I:.*]] = 1 to 20 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 20 {
// CHECK-NEXT: %[[P:.*]] = affine.load %[[B]][%[[I]] - 1, %[[J]]] : memref<20x20xf64>
// CHECK-NEXT: affine.store %[[P]], %[[B]][%[[I]], %[[J]]] : memref<20x20xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_chains(%B: memref<20x20xf64>) {
  affine.for %i = 1 to 20 {
    affine.for %j = 0 to 20 {
      %p = affine.load %B[%i - 1, %j] : memref<20x20xf64>
      affine.store %p, %B[%i, %j] : memref<20x20xf64>
    }
  }
  return
}

// -----

// An element for each iteration is too little to be divided.

// CHECK-LABEL: func.func @leaves_single_elements(
// CHECK-SAME: %[[B:.*]]: memref<20x20xf64>) {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 20 {
// CHECK-NEXT: %[[P:.*]] = affine.load %[[B]][7, 3] : memref<20x20xf64>
// CHECK-NEXT: affine.store %[[P]], %[[B]][%[[I]], 3] : memref<20x20xf64>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_single_elements(%B: memref<20x20xf64>) {
  affine.for %i = 0 to 20 {
    %p = affine.load %B[7, 3] : memref<20x20xf64>
    affine.store %p, %B[%i, 3] : memref<20x20xf64>
  }
  return
}
