// RUN: -p one-task{why=because}

// What has an effect, and what follows from it, goes into the task; it reads and writes what is
// used.

// CHECK-LABEL: func.func @whole(
// CHECK-SAME: %[[A:.*]]: memref<4xf64> {avial.name = "A"}, %[[B:.*]]: memref<4xf64> {avial.name = "B"}, %[[C:.*]]: memref<4xf64> {avial.name = "C"}, %[[X:.*]]: f64) {
// CHECK-NEXT: %[[TWO:.*]] = arith.constant 2.000000e+00 : f64
// CHECK-NEXT: %[[Y:.*]] = arith.mulf %[[X]], %[[TWO]] : f64
// CHECK-NEXT: %[[V0:.*]] = builtin.unrealized_conversion_cast %[[A]] : memref<4xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[V1:.*]] = builtin.unrealized_conversion_cast %[[B]] : memref<4xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[V2:.*]] = builtin.unrealized_conversion_cast %[[C]] : memref<4xf64> to !avial.buffer_ref
// CHECK-NEXT: "avial.schedule"(%[[V0]], %[[V1]], %[[V2]]) ({
// CHECK-NEXT: %[[V3:.*]] = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
// CHECK-NEXT: %[[V4:.*]] = "avial.task"(%[[V3]], %[[V0]], %[[V1]]) ({
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 4 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]]] : memref<4xf64>
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[A_]], %[[Y]] : f64
// CHECK-NEXT: affine.store %[[S]], %[[B]][%[[I]]] : memref<4xf64>
// CHECK-NEXT: }
// CHECK-NEXT: omp.terminator
// CHECK-NEXT: }) {avial.why = ["because"], name = "S1", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
// CHECK-NEXT: omp.terminator
// CHECK-NEXT: }) : (!avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> ()
// CHECK-NEXT: return
func.func @whole(%A: memref<4xf64> {avial.name = "A"}, %B: memref<4xf64> {avial.name = "B"}, %C: memref<4xf64> {avial.name = "C"}, %x: f64) {
  %two = arith.constant 2.0 : f64
  %y = arith.mulf %x, %two : f64
  affine.for %i = 0 to 4 {
    %a = affine.load %A[%i] : memref<4xf64>
    %s = arith.addf %a, %y : f64
    affine.store %s, %B[%i] : memref<4xf64>
  }
  return
}

// -----

// A scalar of memory is not known before the task runs.

// CHECK-LABEL: func.func @values_of_memory(
// CHECK-SAME: %[[A:.*]]: memref<4xf64> {avial.name = "A"}) {
// CHECK-NEXT: %[[C0:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[V0:.*]] = builtin.unrealized_conversion_cast %[[A]] : memref<4xf64> to !avial.buffer_ref
// CHECK-NEXT: "avial.schedule"(%[[V0]]) ({
// CHECK-NEXT: %[[V1:.*]] = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
// CHECK-NEXT: %[[V2:.*]] = "avial.task"(%[[V1]], %[[V0]], %[[V0]]) ({
// CHECK-NEXT: %[[A_:.*]] = memref.load %[[A]][%[[C0]]] : memref<4xf64>
// CHECK-NEXT: %[[B:.*]] = arith.addf %[[A_]], %[[A_]] : f64
// CHECK-NEXT: memref.store %[[B]], %[[A]][%[[C0]]] : memref<4xf64>
// CHECK-NEXT: omp.terminator
// CHECK-NEXT: }) {avial.why = ["because"], name = "S1", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
// CHECK-NEXT: omp.terminator
// CHECK-NEXT: }) : (!avial.buffer_ref) -> ()
// CHECK-NEXT: return
func.func @values_of_memory(%A: memref<4xf64> {avial.name = "A"}) {
  %c0 = arith.constant 0 : index
  %a = memref.load %A[%c0] : memref<4xf64>
  %b = arith.addf %a, %a : f64
  memref.store %b, %A[%c0] : memref<4xf64>
  return
}
