// RUN: -p align-reductions{ranks=2}
// ON: x86_64 avx fma

// The rows of A that a rank has serve both sums: it adds to all of %y, in memory of its own.

// CHECK-LABEL: func.func @rows_and_columns(
// CHECK-SAME: %[[A:.*]]: memref<1000x1000xf64>, %[[B:.*]]: memref<1000x1000xf64>, %[[U:.*]]: memref<1000xf64>, %[[W:.*]]: memref<1000xf64>, %[[X:.*]]: memref<1000xf64>, %[[Y:.*]]: memref<1000xf64>) {
// CHECK-NEXT: %[[A0:.*]] = builtin.unrealized_conversion_cast %[[A]] : memref<1000x1000xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[B0:.*]] = builtin.unrealized_conversion_cast %[[B]] : memref<1000x1000xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[U0:.*]] = builtin.unrealized_conversion_cast %[[U]] : memref<1000xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[W0:.*]] = builtin.unrealized_conversion_cast %[[W]] : memref<1000xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[X0:.*]] = builtin.unrealized_conversion_cast %[[X]] : memref<1000xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[Y0:.*]] = builtin.unrealized_conversion_cast %[[Y]] : memref<1000xf64> to !avial.buffer_ref
// CHECK-NEXT: "avial.schedule"(%[[A0]], %[[B0]], %[[U0]], %[[W0]], %[[X0]], %[[Y0]]) ({
// CHECK-NEXT: %[[CPU:.*]] = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
// CHECK-NEXT: %[[S1:.*]] = "avial.replicate"(%[[CPU]], %[[U0]], %[[A0]], %[[X0]], %[[W0]], %[[Y0]], %[[X0]], %[[Y0]]) ({
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 1000 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 1000 {
// CHECK-NEXT: %[[V:.*]] = affine.load %[[U]][%[[J]]] : memref<1000xf64>
// CHECK-NEXT: %[[E:.*]] = affine.load %[[A]][%[[I]], %[[J]]] : memref<1000x1000xf64>
// CHECK-NEXT: %[[S:.*]] = affine.load %[[X]][%[[I]]] : memref<1000xf64>
// CHECK-NEXT: %[[T:.*]] = math.fma %[[E]], %[[V]], %[[S]] : f64
// CHECK-NEXT: affine.store %[[T]], %[[X]][%[[I]]] : memref<1000xf64>
// CHECK: } {avial.split = 0 : i64}
// CHECK-NEXT: affine.for %[[J_:.*]] = 0 to 1000 {
// CHECK-NEXT: affine.for %[[I_:.*]] = 0 to 1000 {
// CHECK-NEXT: %[[V_:.*]] = affine.load %[[W]][%[[J_]]] : memref<1000xf64>
// CHECK-NEXT: %[[E_:.*]] = affine.load %[[A]][%[[J_]], %[[I_]]] : memref<1000x1000xf64>
// CHECK-NEXT: %[[S_:.*]] = affine.load %[[Y]][%[[I_]]] : memref<1000xf64>
// CHECK-NEXT: %[[T_:.*]] = math.fma %[[E_]], %[[V_]], %[[S_]] : f64
// CHECK-NEXT: affine.store %[[T_]], %[[Y]][%[[I_]]] : memref<1000xf64>
// CHECK: } {avial.split = 0 : i64}
// CHECK: }) {avial.by_rows = ["S2"], avial.fused = ["S1", "S2"], avial.owned0 = array<i64: 0, 1000>, avial.reduced = array<i64: 7>, avial.reordered = 1000 : i64, avial.why = [{{.*}}], name = "S1", operandSegmentSizes = array<i32: 1, 5, 2, 0>} : (
// CHECK: }) : (
// CHECK-NEXT: return
func.func @rows_and_columns(%A: memref<1000x1000xf64>, %B: memref<1000x1000xf64>, %u: memref<1000xf64>, %w: memref<1000xf64>, %x: memref<1000xf64>, %y: memref<1000xf64>) {
  %a0 = builtin.unrealized_conversion_cast %A : memref<1000x1000xf64> to !avial.buffer_ref
  %b0 = builtin.unrealized_conversion_cast %B : memref<1000x1000xf64> to !avial.buffer_ref
  %u0 = builtin.unrealized_conversion_cast %u : memref<1000xf64> to !avial.buffer_ref
  %w0 = builtin.unrealized_conversion_cast %w : memref<1000xf64> to !avial.buffer_ref
  %x0 = builtin.unrealized_conversion_cast %x : memref<1000xf64> to !avial.buffer_ref
  %y0 = builtin.unrealized_conversion_cast %y : memref<1000xf64> to !avial.buffer_ref
  "avial.schedule"(%a0, %b0, %u0, %w0, %x0, %y0) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %S1 = "avial.replicate"(%cpu, %u0, %a0, %x0, %x0) ({
      affine.for %i = 0 to 1000 {
        affine.for %j = 0 to 1000 {
          %v = affine.load %u[%j] : memref<1000xf64>
          %e = affine.load %A[%i, %j] : memref<1000x1000xf64>
          %s = affine.load %x[%i] : memref<1000xf64>
          %t = math.fma %e, %v, %s : f64
          affine.store %t, %x[%i] : memref<1000xf64>
        }
      } {avial.split = 0 : i64}
      omp.terminator
    }) {name = "S1", avial.owned0 = array<i64: 0, 1000>, operandSegmentSizes = array<i32: 1, 3, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    %S2 = "avial.replicate"(%cpu, %w0, %a0, %y0, %y0) ({
      affine.for %i = 0 to 1000 {
        affine.for %j = 0 to 1000 {
          %v = affine.load %w[%j] : memref<1000xf64>
          %e = affine.load %A[%j, %i] : memref<1000x1000xf64>
          %s = affine.load %y[%i] : memref<1000xf64>
          %t = math.fma %e, %v, %s : f64
          affine.store %t, %y[%i] : memref<1000xf64>
        }
      } {avial.split = 0 : i64}
      omp.terminator
    }) {name = "S2", avial.owned0 = array<i64: 0, 1000>, operandSegmentSizes = array<i32: 1, 3, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// Nobody has rows of B.

// CHECK-LABEL: func.func @leaves_other_arrays(
// CHECK-SAME: %[[A:.*]]: memref<1000x1000xf64>, %[[B:.*]]: memref<1000x1000xf64>, %[[U:.*]]: memref<1000xf64>, %[[W:.*]]: memref<1000xf64>, %[[X:.*]]: memref<1000xf64>, %[[Y:.*]]: memref<1000xf64>) {
// CHECK-NEXT: %[[A0:.*]] = builtin.unrealized_conversion_cast %[[A]] : memref<1000x1000xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[B0:.*]] = builtin.unrealized_conversion_cast %[[B]] : memref<1000x1000xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[U0:.*]] = builtin.unrealized_conversion_cast %[[U]] : memref<1000xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[W0:.*]] = builtin.unrealized_conversion_cast %[[W]] : memref<1000xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[X0:.*]] = builtin.unrealized_conversion_cast %[[X]] : memref<1000xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[Y0:.*]] = builtin.unrealized_conversion_cast %[[Y]] : memref<1000xf64> to !avial.buffer_ref
// CHECK-NEXT: "avial.schedule"(%[[A0]], %[[B0]], %[[U0]], %[[W0]], %[[X0]], %[[Y0]]) ({
// CHECK-NEXT: %[[CPU:.*]] = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
// CHECK-NEXT: %[[S1:.*]] = "avial.replicate"(%[[CPU]], %[[U0]], %[[A0]], %[[X0]], %[[X0]]) ({
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 1000 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 1000 {
// CHECK: } {avial.split = 0 : i64}
// CHECK: }) {avial.owned0 = array<i64: 0, 1000>, name = "S1", operandSegmentSizes = array<i32: 1, 3, 1, 0>} : (
// CHECK-NEXT: %[[S2:.*]] = "avial.replicate"(%[[CPU]], %[[W0]], %[[B0]], %[[Y0]], %[[Y0]]) ({
// CHECK-NEXT: affine.for %[[I_:.*]] = 0 to 1000 {
// CHECK-NEXT: affine.for %[[J_:.*]] = 0 to 1000 {
// CHECK: } {avial.split = 0 : i64}
// CHECK: }) {avial.owned0 = array<i64: 0, 1000>, name = "S2", operandSegmentSizes = array<i32: 1, 3, 1, 0>} : (
// CHECK: }) : (
// CHECK-NEXT: return
func.func @leaves_other_arrays(%A: memref<1000x1000xf64>, %B: memref<1000x1000xf64>, %u: memref<1000xf64>, %w: memref<1000xf64>, %x: memref<1000xf64>, %y: memref<1000xf64>) {
  %a0 = builtin.unrealized_conversion_cast %A : memref<1000x1000xf64> to !avial.buffer_ref
  %b0 = builtin.unrealized_conversion_cast %B : memref<1000x1000xf64> to !avial.buffer_ref
  %u0 = builtin.unrealized_conversion_cast %u : memref<1000xf64> to !avial.buffer_ref
  %w0 = builtin.unrealized_conversion_cast %w : memref<1000xf64> to !avial.buffer_ref
  %x0 = builtin.unrealized_conversion_cast %x : memref<1000xf64> to !avial.buffer_ref
  %y0 = builtin.unrealized_conversion_cast %y : memref<1000xf64> to !avial.buffer_ref
  "avial.schedule"(%a0, %b0, %u0, %w0, %x0, %y0) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %S1 = "avial.replicate"(%cpu, %u0, %a0, %x0, %x0) ({
      affine.for %i = 0 to 1000 {
        affine.for %j = 0 to 1000 {
          %v = affine.load %u[%j] : memref<1000xf64>
          %e = affine.load %A[%i, %j] : memref<1000x1000xf64>
          %s = affine.load %x[%i] : memref<1000xf64>
          %t = math.fma %e, %v, %s : f64
          affine.store %t, %x[%i] : memref<1000xf64>
        }
      } {avial.split = 0 : i64}
      omp.terminator
    }) {name = "S1", avial.owned0 = array<i64: 0, 1000>, operandSegmentSizes = array<i32: 1, 3, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    %S2 = "avial.replicate"(%cpu, %w0, %b0, %y0, %y0) ({
      affine.for %i = 0 to 1000 {
        affine.for %j = 0 to 1000 {
          %v = affine.load %w[%j] : memref<1000xf64>
          %e = affine.load %B[%j, %i] : memref<1000x1000xf64>
          %s = affine.load %y[%i] : memref<1000xf64>
          %t = math.fma %e, %v, %s : f64
          affine.store %t, %y[%i] : memref<1000xf64>
        }
      } {avial.split = 0 : i64}
      omp.terminator
    }) {name = "S2", avial.owned0 = array<i64: 0, 1000>, operandSegmentSizes = array<i32: 1, 3, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// The order of the terms is the program's.

// CHECK-LABEL: func.func @leaves_strict_sums(
// CHECK-SAME: %[[A:.*]]: memref<1000x1000xf64>, %[[B:.*]]: memref<1000x1000xf64>, %[[U:.*]]: memref<1000xf64>, %[[W:.*]]: memref<1000xf64>, %[[X:.*]]: memref<1000xf64>, %[[Y:.*]]: memref<1000xf64>) {
// CHECK-NEXT: %[[A0:.*]] = builtin.unrealized_conversion_cast %[[A]] : memref<1000x1000xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[B0:.*]] = builtin.unrealized_conversion_cast %[[B]] : memref<1000x1000xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[U0:.*]] = builtin.unrealized_conversion_cast %[[U]] : memref<1000xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[W0:.*]] = builtin.unrealized_conversion_cast %[[W]] : memref<1000xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[X0:.*]] = builtin.unrealized_conversion_cast %[[X]] : memref<1000xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[Y0:.*]] = builtin.unrealized_conversion_cast %[[Y]] : memref<1000xf64> to !avial.buffer_ref
// CHECK-NEXT: "avial.schedule"(%[[A0]], %[[B0]], %[[U0]], %[[W0]], %[[X0]], %[[Y0]]) ({
// CHECK-NEXT: %[[CPU:.*]] = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
// CHECK-NEXT: %[[S1:.*]] = "avial.replicate"(%[[CPU]], %[[U0]], %[[A0]], %[[X0]], %[[X0]]) ({
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 1000 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 1000 {
// CHECK: } {avial.split = 0 : i64}
// CHECK: }) {avial.owned0 = array<i64: 0, 1000>, name = "S1", operandSegmentSizes = array<i32: 1, 3, 1, 0>} : (
// CHECK-NEXT: %[[S2:.*]] = "avial.replicate"(%[[CPU]], %[[W0]], %[[A0]], %[[Y0]], %[[Y0]]) ({
// CHECK-NEXT: affine.for %[[I_:.*]] = 0 to 1000 {
// CHECK-NEXT: affine.for %[[J_:.*]] = 0 to 1000 {
// CHECK: } {avial.split = 0 : i64}
// CHECK: }) {avial.owned0 = array<i64: 0, 1000>, name = "S2", operandSegmentSizes = array<i32: 1, 3, 1, 0>} : (
// CHECK: }) : (
// CHECK-NEXT: return
module attributes {avial.strict} {
  func.func @leaves_strict_sums(%A: memref<1000x1000xf64>, %B: memref<1000x1000xf64>, %u: memref<1000xf64>, %w: memref<1000xf64>, %x: memref<1000xf64>, %y: memref<1000xf64>) {
    %a0 = builtin.unrealized_conversion_cast %A : memref<1000x1000xf64> to !avial.buffer_ref
    %b0 = builtin.unrealized_conversion_cast %B : memref<1000x1000xf64> to !avial.buffer_ref
    %u0 = builtin.unrealized_conversion_cast %u : memref<1000xf64> to !avial.buffer_ref
    %w0 = builtin.unrealized_conversion_cast %w : memref<1000xf64> to !avial.buffer_ref
    %x0 = builtin.unrealized_conversion_cast %x : memref<1000xf64> to !avial.buffer_ref
    %y0 = builtin.unrealized_conversion_cast %y : memref<1000xf64> to !avial.buffer_ref
    "avial.schedule"(%a0, %b0, %u0, %w0, %x0, %y0) ({
      %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
      %S1 = "avial.replicate"(%cpu, %u0, %a0, %x0, %x0) ({
        affine.for %i = 0 to 1000 {
          affine.for %j = 0 to 1000 {
            %v = affine.load %u[%j] : memref<1000xf64>
            %e = affine.load %A[%i, %j] : memref<1000x1000xf64>
            %s = affine.load %x[%i] : memref<1000xf64>
            %t = math.fma %e, %v, %s : f64
            affine.store %t, %x[%i] : memref<1000xf64>
          }
        } {avial.split = 0 : i64}
        omp.terminator
      }) {name = "S1", avial.owned0 = array<i64: 0, 1000>, operandSegmentSizes = array<i32: 1, 3, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
      %S2 = "avial.replicate"(%cpu, %w0, %a0, %y0, %y0) ({
        affine.for %i = 0 to 1000 {
          affine.for %j = 0 to 1000 {
            %v = affine.load %w[%j] : memref<1000xf64>
            %e = affine.load %A[%j, %i] : memref<1000x1000xf64>
            %s = affine.load %y[%i] : memref<1000xf64>
            %t = math.fma %e, %v, %s : f64
            affine.store %t, %y[%i] : memref<1000xf64>
          }
        } {avial.split = 0 : i64}
        omp.terminator
      }) {name = "S2", avial.owned0 = array<i64: 0, 1000>, operandSegmentSizes = array<i32: 1, 3, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
      omp.terminator
    }) : (!avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> ()
    return
  }
}
