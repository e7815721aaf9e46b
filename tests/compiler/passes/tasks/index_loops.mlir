// RUN: -p index-loops

// The bounds are cast once; in the body the counter is what it was.

// CHECK-LABEL: func.func @signed(
// CHECK-SAME: %[[N:.*]]: i32, %[[A:.*]]: memref<?xi32>) {
// CHECK-NEXT: %[[C0:.*]] = arith.constant 0 : i32
// CHECK-NEXT: %[[C1:.*]] = arith.constant 1 : i32
// CHECK-NEXT: %[[V0:.*]] = arith.index_cast %[[C0]] : i32 to index
// CHECK-NEXT: %[[V1:.*]] = arith.index_cast %[[N]] : i32 to index
// CHECK-NEXT: %[[V2:.*]] = arith.index_cast %[[C1]] : i32 to index
// CHECK-NEXT: scf.for %[[I:.*]] = %[[V0]] to %[[V1]] step %[[V2]] {
// CHECK-NEXT: %[[I_0:.*]] = arith.index_cast %[[I]] : index to i32
// CHECK-NEXT: %[[K:.*]] = arith.index_cast %[[I_0]] : i32 to index
// CHECK-NEXT: %[[J:.*]] = arith.addi %[[I_0]], %[[C1]] : i32
// CHECK-NEXT: memref.store %[[J]], %[[A]][%[[K]]] : memref<?xi32>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @signed(%n: i32, %A: memref<?xi32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %k = arith.index_cast %i : i32 to index
    %j = arith.addi %i, %c1 : i32
    memref.store %j, %A[%k] : memref<?xi32>
  }
  return
}

// -----

// What the loop hands on stays.

// CHECK-LABEL: func.func @carried(
// CHECK-SAME: %[[N:.*]]: i64, %[[S:.*]]: f64) -> f64 {
// CHECK-NEXT: %[[C0:.*]] = arith.constant 0 : i64
// CHECK-NEXT: %[[C1:.*]] = arith.constant 1 : i64
// CHECK-NEXT: %[[R:.*]] = arith.index_cast %[[C0]] : i64 to index
// CHECK-NEXT: %[[R_0:.*]] = arith.index_cast %[[N]] : i64 to index
// CHECK-NEXT: %[[R_1:.*]] = arith.index_cast %[[C1]] : i64 to index
// CHECK-NEXT: %[[R_2:.*]] = scf.for %[[I:.*]] = %[[R]] to %[[R_0]] step %[[R_1]] iter_args(%[[A:.*]] = %[[S]]) -> (f64) {
// CHECK-NEXT: %[[I_3:.*]] = arith.index_cast %[[I]] : index to i64
// CHECK-NEXT: %[[X:.*]] = arith.sitofp %[[I_3]] : i64 to f64
// CHECK-NEXT: %[[B:.*]] = arith.addf %[[A]], %[[X]] : f64
// CHECK-NEXT: scf.yield %[[B]] : f64
// CHECK-NEXT: }
// CHECK-NEXT: return %[[R_2]] : f64
func.func @carried(%n: i64, %s: f64) -> f64 {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %s) -> (f64) : i64 {
    %x = arith.sitofp %i : i64 to f64
    %b = arith.addf %a, %x : f64
    scf.yield %b : f64
  }
  return %r : f64
}

// -----

// An index is signed and has 64 bits.

// CHECK-LABEL: func.func @leaves_what_no_index_can_count(
// CHECK-SAME: %[[N:.*]]: i64, %[[M:.*]]: i128, %[[A:.*]]: memref<1xi64>) {
// CHECK-NEXT: %[[C0:.*]] = arith.constant 0 : i64
// CHECK-NEXT: %[[C1:.*]] = arith.constant 1 : i64
// CHECK-NEXT: %[[K:.*]] = arith.constant 0 : index
// CHECK-NEXT: scf.for unsigned %[[I:.*]] = %[[C0]] to %[[N]] step %[[C1]]  : i64 {
// CHECK-NEXT: memref.store %[[I]], %[[A]][%[[K]]] : memref<1xi64>
// CHECK-NEXT: }
// CHECK-NEXT: %[[D0:.*]] = arith.constant 0 : i128
// CHECK-NEXT: %[[D1:.*]] = arith.constant 1 : i128
// CHECK-NEXT: scf.for %[[I_:.*]] = %[[D0]] to %[[M]] step %[[D1]]  : i128 {
// CHECK-NEXT: %[[J:.*]] = arith.trunci %[[I_]] : i128 to i64
// CHECK-NEXT: memref.store %[[J]], %[[A]][%[[K]]] : memref<1xi64>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_what_no_index_can_count(%n: i64, %m: i128, %A: memref<1xi64>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %k = arith.constant 0 : index
  scf.for unsigned %i = %c0 to %n step %c1 : i64 {
    memref.store %i, %A[%k] : memref<1xi64>
  }
  %d0 = arith.constant 0 : i128
  %d1 = arith.constant 1 : i128
  scf.for %i = %d0 to %m step %d1 : i128 {
    %j = arith.trunci %i : i128 to i64
    memref.store %j, %A[%k] : memref<1xi64>
  }
  return
}

// -----

// It counts in index already.

// CHECK-LABEL: func.func @leaves_index(
// CHECK-SAME: %[[N:.*]]: index, %[[A:.*]]: memref<?xindex>) {
// CHECK-NEXT: %[[C0:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[C1:.*]] = arith.constant 1 : index
// CHECK-NEXT: scf.for %[[I:.*]] = %[[C0]] to %[[N]] step %[[C1]] {
// CHECK-NEXT: memref.store %[[I]], %[[A]][%[[I]]] : memref<?xindex>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_index(%n: index, %A: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    memref.store %i, %A[%i] : memref<?xindex>
  }
  return
}
