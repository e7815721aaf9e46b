// RUN: -p target-devices{on=gpu}

// What is divided goes to a GPU; what asks for a certain one keeps it.

// CHECK-LABEL: func.func @to_a_gpu(
// CHECK: "avial.schedule"
// CHECK-NEXT: %[[NEW:.*]] = "avial.target"() {arch = "gpu", name = "gpu"} : () -> !avial.target_ref
// CHECK-NEXT: %[[CPU:.*]] = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
// CHECK-NEXT: %[[SM:.*]] = "avial.target"() {arch = "sm_90", name = "sm"} : () -> !avial.target_ref
// CHECK-NEXT: "avial.replicate"(%[[NEW]],
// CHECK: "avial.replicate"(%[[SM]],
func.func @to_a_gpu(%A: memref<100xf64>, %B: memref<100xf64>) {
  %A_ = builtin.unrealized_conversion_cast %A : memref<100xf64> to !avial.buffer_ref
  %B_ = builtin.unrealized_conversion_cast %B : memref<100xf64> to !avial.buffer_ref
  "avial.schedule"(%A_, %B_) ({
    %cpu = "avial.target"() {name = "cpu", arch = "cpu"} : () -> !avial.target_ref
    %sm = "avial.target"() {name = "sm", arch = "sm_90"} : () -> !avial.target_ref
    %S1 = "avial.replicate"(%cpu, %A_, %B_) ({
      affine.for %i = 0 to 100 {
        %x = affine.load %A[%i] : memref<100xf64>
        affine.store %x, %B[%i] : memref<100xf64>
      } {avial.split = 0 : i64}
      omp.terminator
    }) {name = "S1", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    %S2 = "avial.replicate"(%sm, %B_, %A_) ({
      affine.for %i = 0 to 100 {
        %x = affine.load %B[%i] : memref<100xf64>
        affine.store %x, %A[%i] : memref<100xf64>
      } {avial.split = 0 : i64}
      omp.terminator
    }) {name = "S2", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// What accumulates, and what is not divided, stays, and says so.

// CHECK-LABEL: func.func @stays(
// CHECK-NOT: arch = "gpu"
// CHECK: avial.reduced = array<i64: 2>, avial.why = ["runs on the CPU: what it accumulates is kept in the memory of the ranks"]
// CHECK: avial.why = ["a chain", "runs on the CPU: it is not divided, and its loops run in order: {{[^"]*}}"]
func.func @stays(%A: memref<100xf64>, %s: memref<1xf64>) {
  %A_ = builtin.unrealized_conversion_cast %A : memref<100xf64> to !avial.buffer_ref
  %s_ = builtin.unrealized_conversion_cast %s : memref<1xf64> to !avial.buffer_ref
  "avial.schedule"(%A_, %s_) ({
    %cpu = "avial.target"() {name = "cpu", arch = "cpu"} : () -> !avial.target_ref
    %S1 = "avial.replicate"(%cpu, %A_, %s_) ({
      affine.for %i = 0 to 100 {
        %x = affine.load %A[%i] : memref<100xf64>
        %y = affine.load %s[0] : memref<1xf64>
        %z = arith.addf %x, %y : f64
        affine.store %z, %s[0] : memref<1xf64>
      } {avial.split = 0 : i64}
      omp.terminator
    }) {name = "S1", avial.reduced = array<i64: 2>, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    %S2 = "avial.task"(%cpu, %s_, %A_) ({
      affine.for %i = 1 to 100 {
        %x = affine.load %A[%i - 1] : memref<100xf64>
        affine.store %x, %A[%i] : memref<100xf64>
      }
      omp.terminator
    }) {name = "S2", avial.why = ["a chain"], operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// A task has a loop around free ones, and single elements between: both are launched.

// CHECK-LABEL: func.func @around(
// CHECK: %[[GPU:.*]] = "avial.target"() {arch = "gpu", name = "gpu"}
// CHECK: "avial.task"(%[[GPU]],
// CHECK-NOT: runs on the CPU
// It would take a value of the device to the host: it stays.
// CHECK-LABEL: func.func @hands_on(
// CHECK-NOT: arch = "gpu"
// CHECK: avial.why = ["runs on the CPU: it is not divided, and its loops run in order: {{[^"]*}}"]
func.func @around(%A: memref<100xf64>) {
  %A_ = builtin.unrealized_conversion_cast %A : memref<100xf64> to !avial.buffer_ref
  "avial.schedule"(%A_) ({
    %cpu = "avial.target"() {name = "cpu", arch = "cpu"} : () -> !avial.target_ref
    %S1 = "avial.task"(%cpu, %A_, %A_) ({
      affine.for %t = 0 to 9 {
        %x = affine.load %A[%t] : memref<100xf64>
        %y = arith.addf %x, %x : f64
        affine.store %y, %A[%t] : memref<100xf64>
        affine.for %i = 50 to 100 {
          %a = affine.load %A[%i] : memref<100xf64>
          %b = affine.load %A[%t] : memref<100xf64>
          %c = arith.addf %a, %b : f64
          affine.store %c, %A[%i] : memref<100xf64>
        }
      }
      omp.terminator
    }) {name = "S1", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref) -> ()
  return
}
func.func @hands_on(%A: memref<100xf64>) {
  %A_ = builtin.unrealized_conversion_cast %A : memref<100xf64> to !avial.buffer_ref
  "avial.schedule"(%A_) ({
    %cpu = "avial.target"() {name = "cpu", arch = "cpu"} : () -> !avial.target_ref
    %S1 = "avial.task"(%cpu, %A_, %A_) ({
      affine.for %t = 0 to 9 {
        %x = affine.load %A[%t] : memref<100xf64>
        affine.for %i = 50 to 100 {
          affine.store %x, %A[%i] : memref<100xf64>
        }
      }
      omp.terminator
    }) {name = "S1", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref) -> ()
  return
}

// -----

// In a loop with what a GPU does, what only goes along its array does not take it to the host each
// time. A nest does: one thread would take too long; so does what touches another array.

// CHECK-LABEL: func.func @in_a_loop(
// CHECK: %[[GPU:.*]] = "avial.target"() {arch = "gpu", name = "gpu"}
// CHECK: %[[CPU:.*]] = "avial.target"() {arch = "cpu", name = "cpu"}
// CHECK: "avial.replicate"(%[[GPU]],
// CHECK: "avial.task"(%[[GPU]],
// CHECK: avial.why = ["it is not divided, and its loops run in order: by one thread of the GPU, where its arrays are in each step"], name = "short"
// CHECK: "avial.task"(%[[CPU]],
// CHECK: avial.why = ["runs on the CPU: it is not divided, and its loops run in order: {{[^"]*}}"], name = "nest"
// CHECK: "avial.task"(%[[CPU]],
// CHECK: avial.why = ["runs on the CPU: it is not divided, and its loops run in order: {{[^"]*}}"], name = "other"
func.func @in_a_loop(%A: memref<100xf64>, %B: memref<100xf64>) {
  %A_ = builtin.unrealized_conversion_cast %A : memref<100xf64> to !avial.buffer_ref
  %B_ = builtin.unrealized_conversion_cast %B : memref<100xf64> to !avial.buffer_ref
  "avial.schedule"(%A_, %B_) ({
    %cpu = "avial.target"() {name = "cpu", arch = "cpu"} : () -> !avial.target_ref
    affine.for %t = 0 to 9 {
      %S1 = "avial.replicate"(%cpu, %A_, %A_) ({
        affine.for %i = 0 to 100 {
          %x = affine.load %A[%i] : memref<100xf64>
          affine.store %x, %A[%i] : memref<100xf64>
        } {avial.split = 0 : i64}
        omp.terminator
      }) {name = "S1", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
      %S2 = "avial.task"(%cpu, %A_, %A_) ({
        affine.for %i = 1 to 100 {
          %x = affine.load %A[%i - 1] : memref<100xf64>
          affine.store %x, %A[%i] : memref<100xf64>
        }
        omp.terminator
      }) {name = "short", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
      %S3 = "avial.task"(%cpu, %A_, %A_) ({
        affine.for %i = 1 to 100 {
          affine.for %j = 1 to 100 {
            %x = affine.load %A[%j - 1] : memref<100xf64>
            affine.store %x, %A[%j] : memref<100xf64>
          }
        }
        omp.terminator
      }) {name = "nest", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
      %S4 = "avial.task"(%cpu, %B_, %B_) ({
        affine.for %i = 1 to 100 {
          %x = affine.load %B[%i - 1] : memref<100xf64>
          affine.store %x, %B[%i] : memref<100xf64>
        }
        omp.terminator
      }) {name = "other", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    }
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}
