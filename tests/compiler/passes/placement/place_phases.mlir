// RUN: -p place-phases{ranks=4 gpus=1 division=cyclic(16)}

// On the ranks with such a device, if they are not all; in blocks of the division.

// CHECK-LABEL: func.func @on_a_gpu(
// CHECK-SAME: %[[A:.*]]: memref<100xf64>, %[[B:.*]]: memref<100xf64>) {
// CHECK-NEXT: %[[A_:.*]] = builtin.unrealized_conversion_cast %[[A]] : memref<100xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[B_:.*]] = builtin.unrealized_conversion_cast %[[B]] : memref<100xf64> to !avial.buffer_ref
// CHECK-NEXT: "avial.schedule"(%[[A_]], %[[B_]]) ({
// CHECK-NEXT: %[[GPU:.*]] = "avial.target"() {arch = "gpu", name = "gpu"} : () -> !avial.target_ref
// CHECK-NEXT: %[[CPU:.*]] = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
// CHECK-NEXT: %[[S1:.*]] = "avial.replicate"(%[[GPU]], %[[A_]], %[[B_]]) ({
// CHECK-NEXT: affine.for %[[I:.*]] = 1 to 99 {
// CHECK-NEXT: %[[L:.*]] = affine.load %[[A]][%[[I]] - 1] : memref<100xf64>
// CHECK-NEXT: %[[R:.*]] = affine.load %[[A]][%[[I]] + 1] : memref<100xf64>
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[L]], %[[R]] : f64
// CHECK-NEXT: affine.store %[[S]], %[[B]][%[[I]]] : memref<100xf64>
// CHECK-NEXT: } {avial.split = 0 : i64}
// CHECK-NEXT: omp.terminator
// CHECK-NEXT: }) {avial.block = 16 : i64, avial.places = array<i64: 4>, avial.ranks = array<i64: 3>, name = "S1", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (
// CHECK-NEXT: %[[S2:.*]] = "avial.replicate"(%[[CPU]], %[[B_]], %[[A_]]) ({
// CHECK-NEXT: affine.for %[[I_:.*]] = 1 to 99 {
// CHECK-NEXT: %[[L_:.*]] = affine.load %[[B]][%[[I_]] - 1] : memref<100xf64>
// CHECK-NEXT: %[[R_:.*]] = affine.load %[[B]][%[[I_]] + 1] : memref<100xf64>
// CHECK-NEXT: %[[S_:.*]] = arith.addf %[[L_]], %[[R_]] : f64
// CHECK-NEXT: affine.store %[[S_]], %[[A]][%[[I_]]] : memref<100xf64>
// CHECK-NEXT: } {avial.split = 0 : i64}
// CHECK-NEXT: omp.terminator
// CHECK-NEXT: }) {avial.block = 16 : i64, name = "S2", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (
// CHECK-NEXT: omp.terminator
// CHECK-NEXT: }) : (
// CHECK-NEXT: return
func.func @on_a_gpu(%A: memref<100xf64>, %B: memref<100xf64>) {
  %a = builtin.unrealized_conversion_cast %A : memref<100xf64> to !avial.buffer_ref
  %b = builtin.unrealized_conversion_cast %B : memref<100xf64> to !avial.buffer_ref
  "avial.schedule"(%a, %b) ({
    %gpu = "avial.target"() {arch = "gpu", name = "gpu"} : () -> !avial.target_ref
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %S1 = "avial.replicate"(%gpu, %a, %b) ({
      affine.for %i = 1 to 99 {
        %l = affine.load %A[%i - 1] : memref<100xf64>
        %r = affine.load %A[%i + 1] : memref<100xf64>
        %s = arith.addf %l, %r : f64
        affine.store %s, %B[%i] : memref<100xf64>
      } {avial.split = 0 : i64}
      omp.terminator
    }) {name = "S1", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    %S2 = "avial.replicate"(%cpu, %b, %a) ({
      affine.for %i = 1 to 99 {
        %l = affine.load %B[%i - 1] : memref<100xf64>
        %r = affine.load %B[%i + 1] : memref<100xf64>
        %s = arith.addf %l, %r : f64
        affine.store %s, %A[%i] : memref<100xf64>
      } {avial.split = 0 : i64}
      omp.terminator
    }) {name = "S2", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// A task is not divided.

// CHECK-LABEL: func.func @a_task(
// CHECK-SAME: %[[A:.*]]: memref<100xf64>, %[[B:.*]]: memref<100xf64>) {
// CHECK-NEXT: %[[A_:.*]] = builtin.unrealized_conversion_cast %[[A]] : memref<100xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[B_:.*]] = builtin.unrealized_conversion_cast %[[B]] : memref<100xf64> to !avial.buffer_ref
// CHECK-NEXT: "avial.schedule"(%[[A_]], %[[B_]]) ({
// CHECK-NEXT: %[[CPU:.*]] = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
// CHECK-NEXT: %[[S1:.*]] = "avial.task"(%[[CPU]], %[[A_]], %[[B_]]) ({
// CHECK-NEXT: affine.for %[[I:.*]] = 1 to 99 {
// CHECK-NEXT: %[[L:.*]] = affine.load %[[A]][%[[I]] - 1] : memref<100xf64>
// CHECK-NEXT: affine.store %[[L]], %[[B]][%[[I]]] : memref<100xf64>
// CHECK-NEXT: }
// CHECK-NEXT: omp.terminator
// CHECK-NEXT: }) {name = "S1", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (
// CHECK-NEXT: omp.terminator
// CHECK-NEXT: }) : (
// CHECK-NEXT: return
func.func @a_task(%A: memref<100xf64>, %B: memref<100xf64>) {
  %a = builtin.unrealized_conversion_cast %A : memref<100xf64> to !avial.buffer_ref
  %b = builtin.unrealized_conversion_cast %B : memref<100xf64> to !avial.buffer_ref
  "avial.schedule"(%a, %b) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %S1 = "avial.task"(%cpu, %a, %b) ({
      affine.for %i = 1 to 99 {
        %l = affine.load %A[%i - 1] : memref<100xf64>
        affine.store %l, %B[%i] : memref<100xf64>
      }
      omp.terminator
    }) {name = "S1", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// No rank has such a device.

func.func @nowhere(%A: memref<100xf64>, %B: memref<100xf64>) {
  %a = builtin.unrealized_conversion_cast %A : memref<100xf64> to !avial.buffer_ref
  %b = builtin.unrealized_conversion_cast %B : memref<100xf64> to !avial.buffer_ref
  "avial.schedule"(%a, %b) ({
    %amd = "avial.target"() {arch = "gfx90a", name = "amd"} : () -> !avial.target_ref
    // REFUSED: no device satisfies target %amd
    %S1 = "avial.replicate"(%amd, %a, %b) ({
      affine.for %i = 1 to 99 {
        %l = affine.load %A[%i - 1] : memref<100xf64>
        %r = affine.load %A[%i + 1] : memref<100xf64>
        %s = arith.addf %l, %r : f64
        affine.store %s, %B[%i] : memref<100xf64>
      } {avial.split = 0 : i64}
      omp.terminator
    }) {name = "S1", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}
