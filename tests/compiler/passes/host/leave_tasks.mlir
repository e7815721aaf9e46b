// RUN: -p leave-tasks

// A branch to the function's end, with a report; the rest goes on behind.

// CHECK-LABEL: llvm.func @avial_outside(i64, !llvm.ptr)
// CHECK: llvm.mlir.global internal constant @[[TEXT:.*]]("A[i]\00")
// CHECK-NOT: leave_if
// CHECK-LABEL: func.func @t(
// CHECK-SAME: %[[OUT:.*]]: i1, %[[INDEX:.*]]: i64, %[[A:.*]]: memref<16xf64>
// CHECK: cf.cond_br %[[OUT]], ^[[LEAVE:.*]], ^[[ON:.*]]
// CHECK: ^[[ON]]:
// CHECK: memref.store
// CHECK: return
// CHECK: ^[[LEAVE]]:
// CHECK: llvm.mlir.addressof @[[TEXT]]
// CHECK: llvm.store %[[INDEX]],
// CHECK: llvm.call @avial_outside(
// CHECK-NEXT: return
llvm.func @avial.leave_if(i1, i64)
func.func @t(%out: i1, %index: i64, %A: memref<16xf64>, %x: f64) {
  llvm.call @avial.leave_if(%out, %index) {avial.access_outside = ["A[i]", 0, 16, 3, 5]} : (i1, i64) -> ()
  %c0 = arith.constant 0 : index
  memref.store %x, %A[%c0] : memref<16xf64>
  return
}

// -----

// Two, and the same text once.

// CHECK: llvm.mlir.global internal constant @{{.*}}("A[i]\00")
// CHECK-NOT: llvm.mlir.global
// CHECK-LABEL: func.func @two(
// CHECK: cf.cond_br
// CHECK: cf.cond_br
llvm.func @avial.leave_if(i1, i64)
func.func @two(%out: i1, %index: i64) {
  llvm.call @avial.leave_if(%out, %index) {avial.access_outside = ["A[i]", 0, 16, 3, 5]} : (i1, i64) -> ()
  llvm.call @avial.leave_if(%out, %index) {avial.access_outside = ["A[i]", 1, 8, 3, 5]} : (i1, i64) -> ()
  return
}

// -----

// A program without such calls stays as it is.

// CHECK-LABEL: func.func @none(
// CHECK-NOT: cf.
func.func @none() {
  return
}
