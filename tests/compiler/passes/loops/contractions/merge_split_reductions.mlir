// RUN: -p merge-split-reductions{least=0}

// Of A the lower triangle is read, and its mirror image: one sum over all of it, from both.

// CHECK-DAG: #[[$MAP:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @triangle_and_mirror(
// CHECK-SAME: %[[C:.*]]: memref<40x50xf64>, %[[A:.*]]: memref<40x40xf64>, %[[B:.*]]: memref<40x50xf64>, %[[ALPHA:.*]]: f64, %[[BETA:.*]]: f64)
// CHECK-SAME: avial.sums = 42 : i64
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f64
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 40 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 50 {
// CHECK-NEXT: %[[V0:.*]] = affine.load %[[C]][%[[I]], %[[J]]] : memref<40x50xf64>
// CHECK-NEXT: %[[V1:.*]] = arith.mulf %[[BETA]], %[[V0]] : f64
// CHECK-NEXT: affine.store %[[V1]], %[[C]][%[[I]], %[[J]]] : memref<40x50xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[I_:.*]] = 0 to 40 {
// CHECK-NEXT: affine.for %[[J_:.*]] = 0 to 50 {
// CHECK-NEXT: affine.for %[[K:.*]] = 0 to 40 {
// CHECK-NEXT: %[[V0_:.*]] = affine.load %[[C]][%[[I_]], %[[J_]]] : memref<40x50xf64>
// CHECK-NEXT: %[[V1_:.*]] = affine.load %[[B]][%[[K]], %[[J_]]] : memref<40x50xf64>
// CHECK-NEXT: %[[V2:.*]] = arith.mulf %[[ALPHA]], %[[V1_]] : f64
// CHECK-NEXT: %[[V3:.*]] = affine.max #[[$MAP]](%[[I_]], %[[K]])
// CHECK-NEXT: %[[V4:.*]] = affine.min #[[$MAP]](%[[I_]], %[[K]])
// CHECK-NEXT: %[[V5:.*]] = memref.load %[[A]][%[[V3]], %[[V4]]] : memref<40x40xf64>
// CHECK-NEXT: %[[V6:.*]] = arith.mulf %[[V5]], %[[V2]] : f64
// CHECK-NEXT: %[[V7:.*]] = arith.addf %[[V0_]], %[[V6]] : f64
// CHECK-NEXT: affine.store %[[V7]], %[[C]][%[[I_]], %[[J_]]] : memref<40x50xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @triangle_and_mirror(%C: memref<40x50xf64>, %A: memref<40x40xf64>, %B: memref<40x50xf64>, %alpha: f64, %beta: f64) attributes {avial.no_alias} {
  %zero = arith.constant 0.0 : f64
  %T = memref.alloc() : memref<40x50xf64>
  affine.for %i = 0 to 40 {
    affine.for %j = 0 to 50 {
      affine.store %zero, %T[%i, %j] : memref<40x50xf64>
      affine.for %k = 0 to affine_map<(d0) -> (d0)>(%i) {
        %t = affine.load %T[%i, %j] : memref<40x50xf64>
        %b = affine.load %B[%i, %j] : memref<40x50xf64>
        %a = affine.load %A[%i, %k] : memref<40x40xf64>
        %c = affine.load %C[%k, %j] : memref<40x50xf64>
        %left = arith.mulf %alpha, %b : f64
        %up = arith.mulf %left, %a : f64
        %sum = arith.addf %c, %up : f64
        affine.store %sum, %C[%k, %j] : memref<40x50xf64>
        %bk = affine.load %B[%k, %j] : memref<40x50xf64>
        %down = arith.mulf %bk, %a : f64
        %next = arith.addf %t, %down : f64
        affine.store %next, %T[%i, %j] : memref<40x50xf64>
      }
      %t = affine.load %T[%i, %j] : memref<40x50xf64>
      %c = affine.load %C[%i, %j] : memref<40x50xf64>
      %b = affine.load %B[%i, %j] : memref<40x50xf64>
      %a = affine.load %A[%i, %i] : memref<40x40xf64>
      %scaled = arith.mulf %beta, %c : f64
      %left = arith.mulf %alpha, %b : f64
      %diagonal = arith.mulf %left, %a : f64
      %s1 = arith.addf %scaled, %diagonal : f64
      %rest = arith.mulf %alpha, %t : f64
      %s2 = arith.addf %s1, %rest : f64
      affine.store %s2, %C[%i, %j] : memref<40x50xf64>
    }
  }
  memref.dealloc %T : memref<40x50xf64>
  return
}

// -----

// Both sums are of the lower triangle: together they are no rectangle.

// CHECK-DAG: #[[$MAP:.*]] = affine_map<(d0) -> (d0)>
// CHECK-LABEL: func.func @leaves_other_pieces(
// CHECK-SAME: %[[C:.*]]: memref<40x50xf64>, %[[A:.*]]: memref<40x40xf64>, %[[B:.*]]: memref<40x50xf64>) attributes {avial.no_alias} {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 40 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 50 {
// CHECK-NEXT: affine.for %[[K:.*]] = 0 to #[[$MAP]](%[[I]]) {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]], %[[K]]] : memref<40x40xf64>
// CHECK-NEXT: %[[B_:.*]] = affine.load %[[B]][%[[K]], %[[J]]] : memref<40x50xf64>
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[A_]], %[[B_]] : f64
// CHECK-NEXT: %[[C_:.*]] = affine.load %[[C]][%[[I]], %[[J]]] : memref<40x50xf64>
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[C_]], %[[P]] : f64
// CHECK-NEXT: affine.store %[[S]], %[[C]][%[[I]], %[[J]]] : memref<40x50xf64>
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[K_:.*]] = 0 to #[[$MAP]](%[[I]]) {
// CHECK-NEXT: %[[A__:.*]] = affine.load %[[A]][%[[I]], %[[K_]]] : memref<40x40xf64>
// CHECK-NEXT: %[[B__:.*]] = affine.load %[[B]][%[[I]], %[[J]]] : memref<40x50xf64>
// CHECK-NEXT: %[[P_:.*]] = arith.mulf %[[A__]], %[[B__]] : f64
// CHECK-NEXT: %[[C__:.*]] = affine.load %[[C]][%[[I]], %[[J]]] : memref<40x50xf64>
// CHECK-NEXT: %[[S_:.*]] = arith.addf %[[C__]], %[[P_]] : f64
// CHECK-NEXT: affine.store %[[S_]], %[[C]][%[[I]], %[[J]]] : memref<40x50xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_other_pieces(%C: memref<40x50xf64>, %A: memref<40x40xf64>, %B: memref<40x50xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 40 {
    affine.for %j = 0 to 50 {
      affine.for %k = 0 to affine_map<(d0) -> (d0)>(%i) {
        %a = affine.load %A[%i, %k] : memref<40x40xf64>
        %b = affine.load %B[%k, %j] : memref<40x50xf64>
        %p = arith.mulf %a, %b : f64
        %c = affine.load %C[%i, %j] : memref<40x50xf64>
        %s = arith.addf %c, %p : f64
        affine.store %s, %C[%i, %j] : memref<40x50xf64>
      }
      affine.for %k = 0 to affine_map<(d0) -> (d0)>(%i) {
        %a = affine.load %A[%i, %k] : memref<40x40xf64>
        %b = affine.load %B[%i, %j] : memref<40x50xf64>
        %p = arith.mulf %a, %b : f64
        %c = affine.load %C[%i, %j] : memref<40x50xf64>
        %s = arith.addf %c, %p : f64
        affine.store %s, %C[%i, %j] : memref<40x50xf64>
      }
    }
  }
  return
}
