// RUN: -p keep-independent

// Marks go from the loop into its body, at the end of it.

// CHECK-LABEL: func.func @independent(
// CHECK-SAME: %[[A:.*]]: memref<9xf64>, %[[X:.*]]: f64) {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 9 {
// CHECK-NEXT: affine.store %[[X]], %[[A]][%[[I]]] : memref<9xf64>
// CHECK-NEXT: llvm.call_intrinsic "llvm.sideeffect"() {avial.independent} : () -> ()
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @independent(%A: memref<9xf64>, %x: f64) {
  affine.for %i = 0 to 9 {
    affine.store %x, %A[%i] : memref<9xf64>
  } {avial.independent}
  return
}

// -----

// CHECK-LABEL: func.func @others(
// CHECK-SAME: %[[A:.*]]: memref<9xf64>, %[[X:.*]]: f64, %[[N:.*]]: index) {
// CHECK-NEXT: %[[C0:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[C1:.*]] = arith.constant 1 : index
// CHECK-NEXT: scf.for %[[I:.*]] = %[[C0]] to %[[N]] step %[[C1]] {
// CHECK-NEXT: memref.store %[[X]], %[[A]][%[[I]]] : memref<9xf64>
// CHECK-NEXT: llvm.call_intrinsic "llvm.sideeffect"() {avial.safelen = 4 : i64} : () -> ()
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[I_:.*]] = 0 to 9 {
// CHECK-NEXT: affine.store %[[X]], %[[A]][%[[I_]]] : memref<9xf64>
// CHECK-NEXT: llvm.call_intrinsic "llvm.sideeffect"() {avial.rolled} : () -> ()
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @others(%A: memref<9xf64>, %x: f64, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    memref.store %x, %A[%i] : memref<9xf64>
  } {avial.safelen = 4 : i64}
  affine.for %i = 0 to 9 {
    affine.store %x, %A[%i] : memref<9xf64>
  } {avial.rolled}
  return
}

// -----

// CHECK-LABEL: func.func @leaves_loops_without(
// CHECK-SAME: %[[A:.*]]: memref<9xf64>, %[[X:.*]]: f64) {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 9 {
// CHECK-NEXT: affine.store %[[X]], %[[A]][%[[I]]] : memref<9xf64>
// CHECK-NEXT: } {avial.parallel}
// CHECK-NEXT: return
func.func @leaves_loops_without(%A: memref<9xf64>, %x: f64) {
  affine.for %i = 0 to 9 {
    affine.store %x, %A[%i] : memref<9xf64>
  } {avial.parallel}
  return
}
