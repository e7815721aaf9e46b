// RUN: -p inline-copies{cache=1024}

// Both arrays fit the cache of 1024 bytes: LLVM is to make no memcpy of the loop.

// CHECK-LABEL: func.func @fits(
// CHECK-SAME: %[[A:.*]]: memref<64xf64>, %[[B:.*]]: memref<64xf64>) attributes {avial.no_alias, passthrough = ["no-builtin-memcpy"]} {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]]] : memref<64xf64>
// CHECK-NEXT: affine.store %[[A_]], %[[B]][%[[I]]] : memref<64xf64>
// CHECK-NEXT: } {avial.independent}
// CHECK-NEXT: return
func.func @fits(%A: memref<64xf64>, %B: memref<64xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 64 {
    %a = affine.load %A[%i] : memref<64xf64>
    affine.store %a, %B[%i] : memref<64xf64>
  } {avial.independent}
  return
}

// -----

// One byte less would do.

// CHECK-LABEL: func.func @leaves_larger_arrays(
// CHECK-SAME: %[[A:.*]]: memref<65xf64>, %[[B:.*]]: memref<64xf64>) attributes {avial.no_alias} {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]]] : memref<65xf64>
// CHECK-NEXT: affine.store %[[A_]], %[[B]][%[[I]]] : memref<64xf64>
// CHECK-NEXT: } {avial.independent}
// CHECK-NEXT: return
func.func @leaves_larger_arrays(%A: memref<65xf64>, %B: memref<64xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 64 {
    %a = affine.load %A[%i] : memref<65xf64>
    affine.store %a, %B[%i] : memref<64xf64>
  } {avial.independent}
  return
}

// -----

// Of one copy nobody knows how long it is: a call may be best there, and is for the whole function.

// CHECK-LABEL: func.func @leaves_open_sizes(
// CHECK-SAME: %[[A:.*]]: memref<64xf64>, %[[B:.*]]: memref<64xf64>, %[[C:.*]]: memref<?xf64>, %[[N:.*]]: index) attributes {avial.no_alias} {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]]] : memref<64xf64>
// CHECK-NEXT: affine.store %[[A_]], %[[B]][%[[I]]] : memref<64xf64>
// CHECK-NEXT: } {avial.independent}
// CHECK-NEXT: affine.for %[[I_:.*]] = 0 to %[[N]] {
// CHECK-NEXT: %[[A__:.*]] = affine.load %[[A]][%[[I_]]] : memref<64xf64>
// CHECK-NEXT: affine.store %[[A__]], %[[C]][%[[I_]]] : memref<?xf64>
// CHECK-NEXT: } {avial.independent}
// CHECK-NEXT: return
func.func @leaves_open_sizes(%A: memref<64xf64>, %B: memref<64xf64>, %C: memref<?xf64>, %n: index) attributes {avial.no_alias} {
  affine.for %i = 0 to 64 {
    %a = affine.load %A[%i] : memref<64xf64>
    affine.store %a, %B[%i] : memref<64xf64>
  } {avial.independent}
  affine.for %i = 0 to %n {
    %a = affine.load %A[%i] : memref<64xf64>
    affine.store %a, %C[%i] : memref<?xf64>
  } {avial.independent}
  return
}

// -----

// LLVM makes calls of copies alone.

// CHECK-LABEL: func.func @leaves_what_computes(
// CHECK-SAME: %[[A:.*]]: memref<64xf64>, %[[B:.*]]: memref<64xf64>) attributes {avial.no_alias} {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]]] : memref<64xf64>
// CHECK-NEXT: %[[B_:.*]] = arith.addf %[[A_]], %[[A_]] : f64
// CHECK-NEXT: affine.store %[[B_]], %[[B]][%[[I]]] : memref<64xf64>
// CHECK-NEXT: } {avial.independent}
// CHECK-NEXT: return
func.func @leaves_what_computes(%A: memref<64xf64>, %B: memref<64xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 64 {
    %a = affine.load %A[%i] : memref<64xf64>
    %b = arith.addf %a, %a : f64
    affine.store %b, %B[%i] : memref<64xf64>
  } {avial.independent}
  return
}
