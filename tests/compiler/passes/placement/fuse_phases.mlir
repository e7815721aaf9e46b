// RUN: -p fuse-phases
// ON: x86_64 avx fma

// A hundred steps over arrays that stay in the cache: one task, whose loops are divided no more.

// CHECK-LABEL: func.func @short_steps(
// CHECK-SAME: %[[A:.*]]: memref<100xf64>, %[[B:.*]]: memref<100xf64>) {
// CHECK-NEXT: %[[A_:.*]] = builtin.unrealized_conversion_cast %[[A]] : memref<100xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[B_:.*]] = builtin.unrealized_conversion_cast %[[B]] : memref<100xf64> to !avial.buffer_ref
// CHECK-NEXT: "avial.schedule"(%[[A_]], %[[B_]]) ({
// CHECK-NEXT: %[[CPU:.*]] = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
// CHECK-NEXT: %[[LOOP1:.*]] = "avial.task"(%[[CPU]], %[[A_]], %[[B_]], %[[B_]], %[[A_]]) ({
// CHECK-NEXT: affine.for %[[T:.*]] = 0 to 100 {
// CHECK-NEXT: affine.for %[[I:.*]] = 1 to 99 {
// CHECK-NEXT: %[[L:.*]] = affine.load %[[A]][%[[I]] - 1] : memref<100xf64>
// CHECK-NEXT: %[[R:.*]] = affine.load %[[A]][%[[I]] + 1] : memref<100xf64>
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[L]], %[[R]] : f64
// CHECK-NEXT: affine.store %[[S]], %[[B]][%[[I]]] : memref<100xf64>
// CHECK: affine.for %[[I_:.*]] = 1 to 99 {
// CHECK-NEXT: %[[L_:.*]] = affine.load %[[B]][%[[I_]] - 1] : memref<100xf64>
// CHECK-NEXT: %[[R_:.*]] = affine.load %[[B]][%[[I_]] + 1] : memref<100xf64>
// CHECK-NEXT: %[[S_:.*]] = arith.addf %[[L_]], %[[R_]] : f64
// CHECK-NEXT: affine.store %[[S_]], %[[A]][%[[I_]]] : memref<100xf64>
// CHECK: }) {avial.fused = ["S1", "S2"], avial.why = [{{.*}}], name = "loop1", operandSegmentSizes = array<i32: 1, 2, 2, 0>} : (
// CHECK: }) : (
// CHECK-NEXT: return
func.func @short_steps(%A: memref<100xf64>, %B: memref<100xf64>) {
  %a = builtin.unrealized_conversion_cast %A : memref<100xf64> to !avial.buffer_ref
  %b = builtin.unrealized_conversion_cast %B : memref<100xf64> to !avial.buffer_ref
  "avial.schedule"(%a, %b) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %loop1 = "avial.converge"() ({
      affine.for %t = 0 to 100 {
        %S1 = "avial.replicate"(%cpu, %a, %b) ({
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
      }
      omp.terminator
    }) {name = "loop1", operandSegmentSizes = array<i32: 0, 0>} : () -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// A timeline of few steps is worth more.

// CHECK-LABEL: func.func @leaves_few_steps(
// CHECK-SAME: %[[A:.*]]: memref<100xf64>, %[[B:.*]]: memref<100xf64>) {
// CHECK-NEXT: %[[A_:.*]] = builtin.unrealized_conversion_cast %[[A]] : memref<100xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[B_:.*]] = builtin.unrealized_conversion_cast %[[B]] : memref<100xf64> to !avial.buffer_ref
// CHECK-NEXT: "avial.schedule"(%[[A_]], %[[B_]]) ({
// CHECK-NEXT: %[[CPU:.*]] = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
// CHECK-NEXT: %[[LOOP1:.*]] = "avial.converge"() ({
// CHECK-NEXT: affine.for %[[T:.*]] = 0 to 15 {
// CHECK-NEXT: %[[S1:.*]] = "avial.replicate"(%[[CPU]], %[[A_]], %[[B_]]) ({
// CHECK-NEXT: affine.for %[[I:.*]] = 1 to 99 {
// CHECK: } {avial.split = 0 : i64}
// CHECK: }) {name = "S1", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (
// CHECK-NEXT: %[[S2:.*]] = "avial.replicate"(%[[CPU]], %[[B_]], %[[A_]]) ({
// CHECK-NEXT: affine.for %[[I_:.*]] = 1 to 99 {
// CHECK: } {avial.split = 0 : i64}
// CHECK: }) {name = "S2", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (
// CHECK: }) {avial.done = [{{.*}}], name = "loop1", operandSegmentSizes = array<i32: 0, 0>} : () -> !avial.task_ref
// CHECK: }) : (
// CHECK-NEXT: return
func.func @leaves_few_steps(%A: memref<100xf64>, %B: memref<100xf64>) {
  %a = builtin.unrealized_conversion_cast %A : memref<100xf64> to !avial.buffer_ref
  %b = builtin.unrealized_conversion_cast %B : memref<100xf64> to !avial.buffer_ref
  "avial.schedule"(%a, %b) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %loop1 = "avial.converge"() ({
      affine.for %t = 0 to 15 {
        %S1 = "avial.replicate"(%cpu, %a, %b) ({
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
      }
      omp.terminator
    }) {name = "loop1", operandSegmentSizes = array<i32: 0, 0>} : () -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// A task of the host would run it.

// CHECK-LABEL: func.func @leaves_gpus(
// CHECK-SAME: %[[A:.*]]: memref<100xf64>, %[[B:.*]]: memref<100xf64>) {
// CHECK-NEXT: %[[A_:.*]] = builtin.unrealized_conversion_cast %[[A]] : memref<100xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[B_:.*]] = builtin.unrealized_conversion_cast %[[B]] : memref<100xf64> to !avial.buffer_ref
// CHECK-NEXT: "avial.schedule"(%[[A_]], %[[B_]]) ({
// CHECK-NEXT: %[[GPU:.*]] = "avial.target"() {arch = "gpu", name = "gpu"} : () -> !avial.target_ref
// CHECK-NEXT: %[[LOOP1:.*]] = "avial.converge"() ({
// CHECK-NEXT: affine.for %[[T:.*]] = 0 to 100 {
// CHECK-NEXT: %[[S1:.*]] = "avial.replicate"(%[[GPU]], %[[A_]], %[[B_]]) ({
// CHECK-NEXT: affine.for %[[I:.*]] = 1 to 99 {
// CHECK: } {avial.split = 0 : i64}
// CHECK: }) {name = "S1", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (
// CHECK-NEXT: %[[S2:.*]] = "avial.replicate"(%[[GPU]], %[[B_]], %[[A_]]) ({
// CHECK-NEXT: affine.for %[[I_:.*]] = 1 to 99 {
// CHECK: } {avial.split = 0 : i64}
// CHECK: }) {name = "S2", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (
// CHECK: }) {name = "loop1", operandSegmentSizes = array<i32: 0, 0>} : () -> !avial.task_ref
// CHECK: }) : (
// CHECK-NEXT: return
func.func @leaves_gpus(%A: memref<100xf64>, %B: memref<100xf64>) {
  %a = builtin.unrealized_conversion_cast %A : memref<100xf64> to !avial.buffer_ref
  %b = builtin.unrealized_conversion_cast %B : memref<100xf64> to !avial.buffer_ref
  "avial.schedule"(%a, %b) ({
    %gpu = "avial.target"() {arch = "gpu", name = "gpu"} : () -> !avial.target_ref
    %loop1 = "avial.converge"() ({
      affine.for %t = 0 to 100 {
        %S1 = "avial.replicate"(%gpu, %a, %b) ({
          affine.for %i = 1 to 99 {
            %l = affine.load %A[%i - 1] : memref<100xf64>
            %r = affine.load %A[%i + 1] : memref<100xf64>
            %s = arith.addf %l, %r : f64
            affine.store %s, %B[%i] : memref<100xf64>
          } {avial.split = 0 : i64}
          omp.terminator
        }) {name = "S1", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
        %S2 = "avial.replicate"(%gpu, %b, %a) ({
          affine.for %i = 1 to 99 {
            %l = affine.load %B[%i - 1] : memref<100xf64>
            %r = affine.load %B[%i + 1] : memref<100xf64>
            %s = arith.addf %l, %r : f64
            affine.store %s, %A[%i] : memref<100xf64>
          } {avial.split = 0 : i64}
          omp.terminator
        }) {name = "S2", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
      }
      omp.terminator
    }) {name = "loop1", operandSegmentSizes = array<i32: 0, 0>} : () -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// Something is stored between them that no phase touches.

// CHECK-LABEL: func.func @leaves_what_is_nobodys(
// CHECK-SAME: %[[A:.*]]: memref<100xf64>, %[[B:.*]]: memref<100xf64>, %[[C:.*]]: memref<100xf64>, %[[X:.*]]: f64) {
// CHECK-NEXT: %[[A_:.*]] = builtin.unrealized_conversion_cast %[[A]] : memref<100xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[B_:.*]] = builtin.unrealized_conversion_cast %[[B]] : memref<100xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[C_:.*]] = builtin.unrealized_conversion_cast %[[C]] : memref<100xf64> to !avial.buffer_ref
// CHECK-NEXT: "avial.schedule"(%[[A_]], %[[B_]], %[[C_]]) ({
// CHECK-NEXT: %[[CPU:.*]] = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
// CHECK-NEXT: %[[LOOP1:.*]] = "avial.converge"() ({
// CHECK-NEXT: affine.for %[[T:.*]] = 0 to 100 {
// CHECK-NEXT: %[[S1:.*]] = "avial.replicate"(%[[CPU]], %[[A_]], %[[B_]]) ({
// CHECK-NEXT: affine.for %[[I:.*]] = 1 to 99 {
// CHECK: } {avial.split = 0 : i64}
// CHECK: }) {name = "S1", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (
// CHECK: %[[S2:.*]] = "avial.replicate"(%[[CPU]], %[[B_]], %[[A_]]) ({
// CHECK-NEXT: affine.for %[[I_:.*]] = 1 to 99 {
// CHECK: } {avial.split = 0 : i64}
// CHECK: }) {name = "S2", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (
// CHECK: }) {name = "loop1", operandSegmentSizes = array<i32: 0, 0>} : () -> !avial.task_ref
// CHECK: }) : (
// CHECK-NEXT: return
func.func @leaves_what_is_nobodys(%A: memref<100xf64>, %B: memref<100xf64>, %C: memref<100xf64>, %x: f64) {
  %a = builtin.unrealized_conversion_cast %A : memref<100xf64> to !avial.buffer_ref
  %b = builtin.unrealized_conversion_cast %B : memref<100xf64> to !avial.buffer_ref
  %c = builtin.unrealized_conversion_cast %C : memref<100xf64> to !avial.buffer_ref
  "avial.schedule"(%a, %b, %c) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %loop1 = "avial.converge"() ({
      affine.for %t = 0 to 100 {
        %S1 = "avial.replicate"(%cpu, %a, %b) ({
          affine.for %i = 1 to 99 {
            %l = affine.load %A[%i - 1] : memref<100xf64>
            %r = affine.load %A[%i + 1] : memref<100xf64>
            %s = arith.addf %l, %r : f64
            affine.store %s, %B[%i] : memref<100xf64>
          } {avial.split = 0 : i64}
          omp.terminator
        }) {name = "S1", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
        affine.store %x, %C[%t] : memref<100xf64>
        %S2 = "avial.replicate"(%cpu, %b, %a) ({
          affine.for %i = 1 to 99 {
            %l = affine.load %B[%i - 1] : memref<100xf64>
            %r = affine.load %B[%i + 1] : memref<100xf64>
            %s = arith.addf %l, %r : f64
            affine.store %s, %A[%i] : memref<100xf64>
          } {avial.split = 0 : i64}
          omp.terminator
        }) {name = "S2", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
      }
      omp.terminator
    }) {name = "loop1", operandSegmentSizes = array<i32: 0, 0>} : () -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}
