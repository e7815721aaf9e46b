// RUN: -p order-for-threads{on=gpu}

// Forward substitution: front i + j subtracts from all x[i] with an x[j] that is known; every
// second one has such an x[j] itself.

// CHECK-LABEL: func.func @solve(
// CHECK: "avial.task"
// CHECK: affine.for %[[FRONT:.*]] = 0 to 79 {
// CHECK-NEXT: affine.if
// CHECK-NOT: affine.for
// CHECK: arith.divf
// CHECK: affine.for %[[I:.*]] = {{.*}}(%[[FRONT]]) to {{.*}}(%[[FRONT]]) {
// CHECK: affine.load %{{.*}}[%[[I]], %{{.*}}] : memref<40x40xf64>
// CHECK-NOT: affine.for
// CHECK: affine.store %{{.*}}, %{{.*}}[%[[I]]] : memref<40xf64>
// CHECK: its loops run in fronts
func.func @solve(%L: memref<40x40xf64>, %x: memref<40xf64>) {
  %0 = builtin.unrealized_conversion_cast %L : memref<40x40xf64> to !avial.buffer_ref
  %1 = builtin.unrealized_conversion_cast %x : memref<40xf64> to !avial.buffer_ref
  "avial.schedule"(%0, %1) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %r = "avial.task"(%cpu, %0, %1, %1) ({
      affine.for %i = 0 to 40 {
        affine.for %j = 0 to affine_map<(d) -> (d)>(%i) {
          %a = affine.load %x[%i] : memref<40xf64>
          %l = affine.load %L[%i, %j] : memref<40x40xf64>
          %b = affine.load %x[%j] : memref<40xf64>
          %p = arith.mulf %l, %b : f64
          %d = arith.subf %a, %p : f64
          affine.store %d, %x[%i] : memref<40xf64>
        }
        %a = affine.load %x[%i] : memref<40xf64>
        %l = affine.load %L[%i, %i] : memref<40x40xf64>
        %q = arith.divf %a, %l : f64
        affine.store %q, %x[%i] : memref<40xf64>
      }
      omp.terminator
    }) {avial.why = ["a chain"], name = "r", operandSegmentSizes = array<i32: 1, 2, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// Each iteration waits for the one before, and nothing in it is free: it stays.

// CHECK-LABEL: func.func @chain(
// CHECK: affine.for %[[I:.*]] = 1 to 40 {
// CHECK: affine.load %{{.*}}[%[[I]] - 1] : memref<40xf64>
// CHECK-NOT: fronts
func.func @chain(%x: memref<40xf64>) {
  %1 = builtin.unrealized_conversion_cast %x : memref<40xf64> to !avial.buffer_ref
  "avial.schedule"(%1) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %r = "avial.task"(%cpu, %1, %1) ({
      affine.for %i = 1 to 40 {
        %a = affine.load %x[%i - 1] : memref<40xf64>
        %b = affine.load %x[%i] : memref<40xf64>
        %c = arith.addf %a, %b : f64
        affine.store %c, %x[%i] : memref<40xf64>
      }
      omp.terminator
    }) {name = "r", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref) -> ()
  return
}

// -----

// Points that are computed in place: all on a diagonal at once.

// CHECK-LABEL: func.func @in_place(
// CHECK: affine.for %[[FRONT:.*]] = 2 to 77 {
// CHECK: affine.for %[[I:.*]] = max
// CHECK-NOT: affine.for
// CHECK: affine.store
func.func @in_place(%A: memref<40x40xf64>) {
  %0 = builtin.unrealized_conversion_cast %A : memref<40x40xf64> to !avial.buffer_ref
  "avial.schedule"(%0) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %r = "avial.task"(%cpu, %0, %0) ({
      affine.for %i = 1 to 39 {
        affine.for %j = 1 to 39 {
          %a = affine.load %A[%i - 1, %j] : memref<40x40xf64>
          %b = affine.load %A[%i, %j - 1] : memref<40x40xf64>
          %c = arith.addf %a, %b : f64
          affine.store %c, %A[%i, %j] : memref<40x40xf64>
        }
      }
      omp.terminator
    }) {name = "r", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref) -> ()
  return
}

// -----

// A sum that a loop carries lives in the element that it is stored to again.

// CHECK-LABEL: func.func @carried(
// CHECK: affine.for %[[FRONT:.*]] = 0 to
// CHECK-NOT: iter_args
// CHECK: its loops run in fronts
func.func @carried(%A: memref<40x40xf64>) {
  %0 = builtin.unrealized_conversion_cast %A : memref<40x40xf64> to !avial.buffer_ref
  "avial.schedule"(%0) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %r = "avial.task"(%cpu, %0, %0) ({
      affine.for %i = 0 to 40 {
        affine.for %j = 0 to affine_map<(d) -> (d)>(%i) {
          %first = affine.load %A[%i, %j] : memref<40x40xf64>
          %w = affine.for %k = 0 to affine_map<(d) -> (d)>(%j) iter_args(%acc = %first) -> (f64) {
            %l = affine.load %A[%i, %k] : memref<40x40xf64>
            %u = affine.load %A[%j, %k] : memref<40x40xf64>
            %p = arith.mulf %l, %u : f64
            %d = arith.subf %acc, %p : f64
            affine.yield %d : f64
          }
          %v = affine.load %A[%j, %j] : memref<40x40xf64>
          %q = arith.divf %w, %v : f64
          affine.store %q, %A[%i, %j] : memref<40x40xf64>
        }
      }
      omp.terminator
    }) {name = "r", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref) -> ()
  return
}
