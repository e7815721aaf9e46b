// RUN: -p distribute-loops

// The chain along %C keeps the loop whole; A is made by a loop of its own, and what both need
// twice.

// CHECK-LABEL: func.func @beside_a_chain(
// CHECK-SAME: %[[A:.*]]: memref<100xf64>, %[[B:.*]]: memref<100xf64>, %[[C:.*]]: memref<100xf64>) {
// CHECK-NEXT: affine.for %[[I:.*]] = 1 to 100 {
// CHECK-NEXT: %[[B_:.*]] = affine.load %[[B]][%[[I]]] : memref<100xf64>
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[B_]], %[[B_]] : f64
// CHECK-NEXT: affine.store %[[S]], %[[A]][%[[I]]] : memref<100xf64>
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[I_:.*]] = 1 to 100 {
// CHECK-NEXT: %[[B__:.*]] = affine.load %[[B]][%[[I_]]] : memref<100xf64>
// CHECK-NEXT: %[[S_:.*]] = arith.addf %[[B__]], %[[B__]] : f64
// CHECK-NEXT: %[[C_:.*]] = affine.load %[[C]][%[[I_]] - 1] : memref<100xf64>
// CHECK-NEXT: %[[D:.*]] = arith.addf %[[C_]], %[[S_]] : f64
// CHECK-NEXT: affine.store %[[D]], %[[C]][%[[I_]]] : memref<100xf64>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @beside_a_chain(%A: memref<100xf64>, %B: memref<100xf64>, %C: memref<100xf64>) {
  affine.for %i = 1 to 100 {
    %b = affine.load %B[%i] : memref<100xf64>
    %s = arith.addf %b, %b : f64
    affine.store %s, %A[%i] : memref<100xf64>
    %c = affine.load %C[%i - 1] : memref<100xf64>
    %d = arith.addf %c, %s : f64
    affine.store %d, %C[%i] : memref<100xf64>
  }
  return
}

// -----

// Who reads what an iteration before wrote goes behind who writes it, though the text has it
// before.

// CHECK-LABEL: func.func @in_the_other_order(
// CHECK-SAME: %[[A:.*]]: memref<100xf64>, %[[B:.*]]: memref<100xf64>, %[[C:.*]]: memref<100xf64>) {
// CHECK-NEXT: affine.for %[[I:.*]] = 1 to 100 {
// CHECK-NEXT: %[[B_:.*]] = affine.load %[[B]][%[[I]]] : memref<100xf64>
// CHECK-NEXT: affine.store %[[B_]], %[[A]][%[[I]]] : memref<100xf64>
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[I_:.*]] = 1 to 100 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I_]] - 1] : memref<100xf64>
// CHECK-NEXT: affine.store %[[A_]], %[[C]][%[[I_]]] : memref<100xf64>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @in_the_other_order(%A: memref<100xf64>, %B: memref<100xf64>, %C: memref<100xf64>) {
  affine.for %i = 1 to 100 {
    %a = affine.load %A[%i - 1] : memref<100xf64>
    affine.store %a, %C[%i] : memref<100xf64>
    %b = affine.load %B[%i] : memref<100xf64>
    affine.store %b, %A[%i] : memref<100xf64>
  }
  return
}

// -----

// Each needs the other: nothing can be first.

// CHECK-LABEL: func.func @leaves_cycles(
// CHECK-SAME: %[[A:.*]]: memref<100xf64>, %[[C:.*]]: memref<100xf64>) {
// CHECK-NEXT: affine.for %[[I:.*]] = 1 to 100 {
// CHECK-NEXT: %[[C_:.*]] = affine.load %[[C]][%[[I]] - 1] : memref<100xf64>
// CHECK-NEXT: affine.store %[[C_]], %[[A]][%[[I]]] : memref<100xf64>
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]]] : memref<100xf64>
// CHECK-NEXT: affine.store %[[A_]], %[[C]][%[[I]]] : memref<100xf64>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_cycles(%A: memref<100xf64>, %C: memref<100xf64>) {
  affine.for %i = 1 to 100 {
    %c = affine.load %C[%i - 1] : memref<100xf64>
    affine.store %c, %A[%i] : memref<100xf64>
    %a = affine.load %A[%i] : memref<100xf64>
    affine.store %a, %C[%i] : memref<100xf64>
  }
  return
}

// -----

// B is overwritten where the second loop would load it again.

// CHECK-LABEL: func.func @leaves_what_cannot_be_had_twice(
// CHECK-SAME: %[[A:.*]]: memref<100xf64>, %[[B:.*]]: memref<100xf64>, %[[C:.*]]: memref<100xf64>) {
// CHECK-NEXT: affine.for %[[I:.*]] = 1 to 100 {
// CHECK-NEXT: %[[B_:.*]] = affine.load %[[B]][%[[I]]] : memref<100xf64>
// CHECK-NEXT: affine.store %[[B_]], %[[A]][%[[I]]] : memref<100xf64>
// CHECK-NEXT: %[[C_:.*]] = affine.load %[[C]][%[[I]] - 1] : memref<100xf64>
// CHECK-NEXT: %[[D:.*]] = arith.addf %[[C_]], %[[B_]] : f64
// CHECK-NEXT: affine.store %[[D]], %[[C]][%[[I]]] : memref<100xf64>
// CHECK-NEXT: affine.store %[[D]], %[[B]][%[[I]]] : memref<100xf64>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_what_cannot_be_had_twice(%A: memref<100xf64>, %B: memref<100xf64>, %C: memref<100xf64>) {
  affine.for %i = 1 to 100 {
    %b = affine.load %B[%i] : memref<100xf64>
    affine.store %b, %A[%i] : memref<100xf64>
    %c = affine.load %C[%i - 1] : memref<100xf64>
    %d = arith.addf %c, %b : f64
    affine.store %d, %C[%i] : memref<100xf64>
    affine.store %d, %B[%i] : memref<100xf64>
  }
  return
}

// -----

// CHECK-LABEL: func.func @leaves_what_can_be_divided_whole(
// CHECK-SAME: %[[A:.*]]: memref<100xf64>, %[[B:.*]]: memref<100xf64>, %[[C:.*]]: memref<100xf64>) {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 100 {
// CHECK-NEXT: %[[B_:.*]] = affine.load %[[B]][%[[I]]] : memref<100xf64>
// CHECK-NEXT: affine.store %[[B_]], %[[A]][%[[I]]] : memref<100xf64>
// CHECK-NEXT: affine.store %[[B_]], %[[C]][%[[I]]] : memref<100xf64>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_what_can_be_divided_whole(%A: memref<100xf64>, %B: memref<100xf64>, %C: memref<100xf64>) {
  affine.for %i = 0 to 100 {
    %b = affine.load %B[%i] : memref<100xf64>
    affine.store %b, %A[%i] : memref<100xf64>
    affine.store %b, %C[%i] : memref<100xf64>
  }
  return
}
