// RUN: -p block-triangular-solves{rows=8}

// Of eight rows, what waits for earlier blocks only goes first: those loops may be divided.

// CHECK-DAG: #[[$MAP:.*]] = affine_map<(d0) -> (d0)>
// CHECK-DAG: #[[$MAP1:.*]] = affine_map<(d0) -> (96, d0 + 8)>
// CHECK-LABEL: func.func @lower(
// CHECK-SAME: %[[L:.*]]: memref<97x97xf64>, %[[X:.*]]: memref<97xf64>, %[[B:.*]]: memref<97xf64>)
// CHECK-SAME: avial.sums = 95 : i64
// CHECK-NEXT: affine.for %[[ARG3:.*]] = 0 to 96 step 8 {
// CHECK-NEXT: affine.for %[[I:.*]] = #[[$MAP]](%[[ARG3]]) to min #[[$MAP1]](%[[ARG3]]) {
// CHECK-NEXT: %[[V:.*]] = affine.load %[[B]][%[[I]]] : memref<97xf64>
// CHECK-NEXT: affine.store %[[V]], %[[X]][%[[I]]] : memref<97xf64>
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to #[[$MAP]](%[[ARG3]]) {
// CHECK-NEXT: %[[L_:.*]] = affine.load %[[L]][%[[I]], %[[J]]] : memref<97x97xf64>
// CHECK-NEXT: %[[E:.*]] = affine.load %[[X]][%[[J]]] : memref<97xf64>
// CHECK-NEXT: %[[O:.*]] = affine.load %[[X]][%[[I]]] : memref<97xf64>
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[L_]], %[[E]] : f64
// CHECK-NEXT: %[[S:.*]] = arith.subf %[[O]], %[[P]] : f64
// CHECK-NEXT: affine.store %[[S]], %[[X]][%[[I]]] : memref<97xf64>
// CHECK-NEXT: }
// CHECK-NEXT: } {avial.ordered}
// CHECK-NEXT: affine.for %[[I_:.*]] = #[[$MAP]](%[[ARG3]]) to min #[[$MAP1]](%[[ARG3]]) {
// CHECK-NEXT: affine.for %[[J_:.*]] = #[[$MAP]](%[[ARG3]]) to #[[$MAP]](%[[I_]]) {
// CHECK-NEXT: %[[L__:.*]] = affine.load %[[L]][%[[I_]], %[[J_]]] : memref<97x97xf64>
// CHECK-NEXT: %[[E_:.*]] = affine.load %[[X]][%[[J_]]] : memref<97xf64>
// CHECK-NEXT: %[[O_0:.*]] = affine.load %[[X]][%[[I_]]] : memref<97xf64>
// CHECK-NEXT: %[[P_:.*]] = arith.mulf %[[L__]], %[[E_]] : f64
// CHECK-NEXT: %[[S_:.*]] = arith.subf %[[O_0]], %[[P_]] : f64
// CHECK-NEXT: affine.store %[[S_]], %[[X]][%[[I_]]] : memref<97xf64>
// CHECK-NEXT: }
// CHECK-NEXT: %[[O_:.*]] = affine.load %[[X]][%[[I_]]] : memref<97xf64>
// CHECK-NEXT: %[[D:.*]] = affine.load %[[L]][%[[I_]], %[[I_]]] : memref<97x97xf64>
// CHECK-NEXT: %[[Q:.*]] = arith.divf %[[O_]], %[[D]] : f64
// CHECK-NEXT: affine.store %[[Q]], %[[X]][%[[I_]]] : memref<97xf64>
// CHECK-NEXT: } {avial.ordered}
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @lower(%L: memref<97x97xf64>, %x: memref<97xf64>, %b: memref<97xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 96 {
    %v = affine.load %b[%i] : memref<97xf64>
    affine.store %v, %x[%i] : memref<97xf64>
    affine.for %j = 0 to affine_map<(i) -> (i)>(%i) {
      %l = affine.load %L[%i, %j] : memref<97x97xf64>
      %e = affine.load %x[%j] : memref<97xf64>
      %p = arith.mulf %l, %e : f64
      %o = affine.load %x[%i] : memref<97xf64>
      %s = arith.subf %o, %p : f64
      affine.store %s, %x[%i] : memref<97xf64>
    }
    %o = affine.load %x[%i] : memref<97xf64>
    %d = affine.load %L[%i, %i] : memref<97x97xf64>
    %q = arith.divf %o, %d : f64
    affine.store %q, %x[%i] : memref<97xf64>
  }
  return
}

// -----

// A product of a matrix: no row waits for another.

// CHECK-LABEL: func.func @leaves_products(
// CHECK-SAME: %[[L:.*]]: memref<97x97xf64>, %[[X:.*]]: memref<97xf64>, %[[B:.*]]: memref<97xf64>) attributes {avial.no_alias} {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 96 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 97 {
// CHECK-NEXT: %[[L_:.*]] = affine.load %[[L]][%[[I]], %[[J]]] : memref<97x97xf64>
// CHECK-NEXT: %[[E:.*]] = affine.load %[[B]][%[[J]]] : memref<97xf64>
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[L_]], %[[E]] : f64
// CHECK-NEXT: %[[O:.*]] = affine.load %[[X]][%[[I]]] : memref<97xf64>
// CHECK-NEXT: %[[S:.*]] = arith.subf %[[O]], %[[P]] : f64
// CHECK-NEXT: affine.store %[[S]], %[[X]][%[[I]]] : memref<97xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_products(%L: memref<97x97xf64>, %x: memref<97xf64>, %b: memref<97xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 96 {
    affine.for %j = 0 to 97 {
      %l = affine.load %L[%i, %j] : memref<97x97xf64>
      %e = affine.load %b[%j] : memref<97xf64>
      %p = arith.mulf %l, %e : f64
      %o = affine.load %x[%i] : memref<97xf64>
      %s = arith.subf %o, %p : f64
      affine.store %s, %x[%i] : memref<97xf64>
    }
  }
  return
}

// -----

// Three blocks are too few.

// CHECK-DAG: #[[$MAP:.*]] = affine_map<(d0) -> (d0)>
// CHECK-LABEL: func.func @leaves_few_rows(
// CHECK-SAME: %[[L:.*]]: memref<97x97xf64>, %[[X:.*]]: memref<97xf64>) attributes {avial.no_alias} {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 24 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to #[[$MAP]](%[[I]]) {
// CHECK-NEXT: %[[L_:.*]] = affine.load %[[L]][%[[I]], %[[J]]] : memref<97x97xf64>
// CHECK-NEXT: %[[E:.*]] = affine.load %[[X]][%[[J]]] : memref<97xf64>
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[L_]], %[[E]] : f64
// CHECK-NEXT: %[[O:.*]] = affine.load %[[X]][%[[I]]] : memref<97xf64>
// CHECK-NEXT: %[[S:.*]] = arith.subf %[[O]], %[[P]] : f64
// CHECK-NEXT: affine.store %[[S]], %[[X]][%[[I]]] : memref<97xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_few_rows(%L: memref<97x97xf64>, %x: memref<97xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 24 {
    affine.for %j = 0 to affine_map<(i) -> (i)>(%i) {
      %l = affine.load %L[%i, %j] : memref<97x97xf64>
      %e = affine.load %x[%j] : memref<97xf64>
      %p = arith.mulf %l, %e : f64
      %o = affine.load %x[%i] : memref<97xf64>
      %s = arith.subf %o, %p : f64
      affine.store %s, %x[%i] : memref<97xf64>
    }
  }
  return
}
