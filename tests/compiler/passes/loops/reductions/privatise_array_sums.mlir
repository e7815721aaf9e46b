// RUN: -p privatise-array-sums

// Each row adds to all of %y: parts of 24 rows add to sums of their own, which are added up then.

// CHECK-DAG: #[[$MAP:.*]] = affine_map<(d0) -> (d0)>
// CHECK-DAG: #[[$MAP1:.*]] = affine_map<(d0) -> (70, d0 + 24)>
// CHECK-LABEL: func.func @rows_and_columns(
// CHECK-SAME: %[[A:.*]]: memref<70x9xf64>, %[[Y:.*]]: memref<9xf64>, %[[S:.*]]: memref<70xf64>)
// CHECK-SAME: avial.sums = 70 : i64
// CHECK-SAME: avial.task = "S1"
// CHECK-NEXT: %[[Y_PARTS:.*]] = memref.alloc() {alignment = 64 : i64} : memref<4x16xf64>
// CHECK-NEXT: affine.for %[[FROM:.*]] = 0 to 70 step 24 {
// CHECK-NEXT: %[[CST:.*]] = arith.constant -0.000000e+00 : f64
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 9 {
// CHECK-NEXT: affine.store %[[CST]], %[[Y_PARTS]][%[[FROM]] floordiv 24, %[[J]]] : memref<4x16xf64>
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[I:.*]] = #[[$MAP]](%[[FROM]]) to min #[[$MAP1]](%[[FROM]]) {
// CHECK-NEXT: affine.for %[[J_:.*]] = 0 to 9 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]], %[[J_]]] : memref<70x9xf64>
// CHECK-NEXT: %[[T:.*]] = affine.load %[[S]][%[[I]]] : memref<70xf64>
// CHECK-NEXT: %[[U:.*]] = arith.addf %[[T]], %[[A_]] : f64
// CHECK-NEXT: affine.store %[[U]], %[[S]][%[[I]]] : memref<70xf64>
// CHECK-NEXT: %[[O:.*]] = affine.load %[[Y_PARTS]][%[[FROM]] floordiv 24, %[[J_]]] : memref<4x16xf64>
// CHECK-NEXT: %[[N:.*]] = arith.addf %[[O]], %[[A_]] : f64
// CHECK-NEXT: affine.store %[[N]], %[[Y_PARTS]][%[[FROM]] floordiv 24, %[[J_]]] : memref<4x16xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: } {avial.parallel}
// CHECK-NEXT: affine.for %[[FROM_:.*]] = 0 to 70 step 24 {
// CHECK-NEXT: affine.for %[[J__:.*]] = 0 to 9 {
// CHECK-NEXT: %[[V0:.*]] = affine.load %[[Y_PARTS]][%[[FROM_]] floordiv 24, %[[J__]]] : memref<4x16xf64>
// CHECK-NEXT: %[[V1:.*]] = affine.load %[[Y]][%[[J__]]] : memref<9xf64>
// CHECK-NEXT: %[[V2:.*]] = arith.addf %[[V1]], %[[V0]] : f64
// CHECK-NEXT: affine.store %[[V2]], %[[Y]][%[[J__]]] : memref<9xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: memref.dealloc %[[Y_PARTS]] : memref<4x16xf64>
// CHECK-NEXT: return
func.func @rows_and_columns(%A: memref<70x9xf64>, %y: memref<9xf64>, %s: memref<70xf64>) attributes {avial.no_alias, avial.task = "S1"} {
  affine.for %i = 0 to 70 {
    affine.for %j = 0 to 9 {
      %a = affine.load %A[%i, %j] : memref<70x9xf64>
      %t = affine.load %s[%i] : memref<70xf64>
      %u = arith.addf %t, %a : f64
      affine.store %u, %s[%i] : memref<70xf64>
      %o = affine.load %y[%j] : memref<9xf64>
      %n = arith.addf %o, %a : f64
      affine.store %n, %y[%j] : memref<9xf64>
    }
  }
  return
}

// -----

// Two parts at least.

// CHECK-LABEL: func.func @leaves_few_rows(
// CHECK-SAME: %[[A:.*]]: memref<47x9xf64>, %[[Y:.*]]: memref<9xf64>, %[[S:.*]]: memref<47xf64>) attributes {avial.no_alias, avial.task = "S1"} {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 47 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 9 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]], %[[J]]] : memref<47x9xf64>
// CHECK-NEXT: %[[T:.*]] = affine.load %[[S]][%[[I]]] : memref<47xf64>
// CHECK-NEXT: %[[U:.*]] = arith.addf %[[T]], %[[A_]] : f64
// CHECK-NEXT: affine.store %[[U]], %[[S]][%[[I]]] : memref<47xf64>
// CHECK-NEXT: %[[O:.*]] = affine.load %[[Y]][%[[J]]] : memref<9xf64>
// CHECK-NEXT: %[[N:.*]] = arith.addf %[[O]], %[[A_]] : f64
// CHECK-NEXT: affine.store %[[N]], %[[Y]][%[[J]]] : memref<9xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_few_rows(%A: memref<47x9xf64>, %y: memref<9xf64>, %s: memref<47xf64>) attributes {avial.no_alias, avial.task = "S1"} {
  affine.for %i = 0 to 47 {
    affine.for %j = 0 to 9 {
      %a = affine.load %A[%i, %j] : memref<47x9xf64>
      %t = affine.load %s[%i] : memref<47xf64>
      %u = arith.addf %t, %a : f64
      affine.store %u, %s[%i] : memref<47xf64>
      %o = affine.load %y[%j] : memref<9xf64>
      %n = arith.addf %o, %a : f64
      affine.store %n, %y[%j] : memref<9xf64>
    }
  }
  return
}

// -----

// Threads may have columns, which keeps the order of the terms.

// CHECK-LABEL: func.func @leaves_columns_alone(
// CHECK-SAME: %[[A:.*]]: memref<70x9xf64>, %[[Y:.*]]: memref<9xf64>) attributes {avial.no_alias, avial.task = "S1"} {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 70 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 9 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]], %[[J]]] : memref<70x9xf64>
// CHECK-NEXT: %[[O:.*]] = affine.load %[[Y]][%[[J]]] : memref<9xf64>
// CHECK-NEXT: %[[N:.*]] = arith.addf %[[O]], %[[A_]] : f64
// CHECK-NEXT: affine.store %[[N]], %[[Y]][%[[J]]] : memref<9xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_columns_alone(%A: memref<70x9xf64>, %y: memref<9xf64>) attributes {avial.no_alias, avial.task = "S1"} {
  affine.for %i = 0 to 70 {
    affine.for %j = 0 to 9 {
      %a = affine.load %A[%i, %j] : memref<70x9xf64>
      %o = affine.load %y[%j] : memref<9xf64>
      %n = arith.addf %o, %a : f64
      affine.store %n, %y[%j] : memref<9xf64>
    }
  }
  return
}

// -----

// The order is the program's.

// CHECK-LABEL: func.func @leaves_strict_sums(
// CHECK-SAME: %[[A:.*]]: memref<70x9xf64>, %[[Y:.*]]: memref<9xf64>, %[[S:.*]]: memref<70xf64>) attributes {avial.no_alias, avial.task = "S1"} {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 70 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 9 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]], %[[J]]] : memref<70x9xf64>
// CHECK-NEXT: %[[T:.*]] = affine.load %[[S]][%[[I]]] : memref<70xf64>
// CHECK-NEXT: %[[U:.*]] = arith.addf %[[T]], %[[A_]] : f64
// CHECK-NEXT: affine.store %[[U]], %[[S]][%[[I]]] : memref<70xf64>
// CHECK-NEXT: %[[O:.*]] = affine.load %[[Y]][%[[J]]] : memref<9xf64>
// CHECK-NEXT: %[[N:.*]] = arith.addf %[[O]], %[[A_]] : f64
// CHECK-NEXT: affine.store %[[N]], %[[Y]][%[[J]]] : memref<9xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
module attributes {avial.strict} {
  func.func @leaves_strict_sums(%A: memref<70x9xf64>, %y: memref<9xf64>, %s: memref<70xf64>) attributes {avial.no_alias, avial.task = "S1"} {
    affine.for %i = 0 to 70 {
      affine.for %j = 0 to 9 {
        %a = affine.load %A[%i, %j] : memref<70x9xf64>
        %t = affine.load %s[%i] : memref<70xf64>
        %u = arith.addf %t, %a : f64
        affine.store %u, %s[%i] : memref<70xf64>
        %o = affine.load %y[%j] : memref<9xf64>
        %n = arith.addf %o, %a : f64
        affine.store %n, %y[%j] : memref<9xf64>
      }
    }
    return
  }
}
