// RUN: -p unwrap-tasks

// What stood in tasks, in the order they were written.

// CHECK-LABEL: func.func @both
// CHECK-NOT: avial
// CHECK: affine.for %[[I:.*]] = 0 to 20
// CHECK: memref.copy
// CHECK-NOT: avial
// CHECK: return
func.func @both(%a: memref<20xf64>, %b: memref<20xf64>) {
  %ref = builtin.unrealized_conversion_cast %a : memref<20xf64> to !avial.buffer_ref
  "avial.schedule"(%ref) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %0 = "avial.replicate"(%cpu, %ref) ({
      %zero = arith.constant 0.0 : f64
      affine.for %i = 0 to 20 {
        affine.store %zero, %a[%i] : memref<20xf64>
      }
      omp.terminator
    }) {name = "s", operandSegmentSizes = array<i32: 1, 0, 1, 0>} : (!avial.target_ref, !avial.buffer_ref) -> !avial.task_ref
    %1 = "avial.task"(%cpu, %ref, %0) ({
      memref.copy %a, %b : memref<20xf64> to memref<20xf64>
      omp.terminator
    }) {name = "t", operandSegmentSizes = array<i32: 1, 1, 0, 1>} : (!avial.target_ref, !avial.buffer_ref, !avial.task_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref) -> ()
  return
}
