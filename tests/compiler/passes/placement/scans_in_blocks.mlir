// RUN: -p scans-in-blocks{on=gpu}

// Parts of eight terms, each by itself; what comes before each of them; both together.

// CHECK: #[[FIRST:.*]] = affine_map<(d0) -> (d0 * 8 + 2)>
// CHECK: #[[LEFT:.*]] = affine_map<(d0) -> (8, d0 * -8 + 2093)>
// CHECK: #[[AT:.*]] = affine_map<(d0, d1) -> (d0 * 8 + d1 + 2)>
// CHECK-LABEL: func.func @running_sum(
// CHECK: %t_before = memref.alloc() : memref<262xi64>
// CHECK: %t_parts = memref.alloc() : memref<262xi64>
// CHECK: "avial.replicate"
// CHECK: affine.for %[[P:.*]] = 0 to 262 {
// CHECK: affine.apply #[[FIRST]](%[[P]])
// CHECK: affine.store
// CHECK: affine.for %[[K:.*]] = 1 to min #[[LEFT]](%[[P]]) iter_args(%[[S:.*]] =
// CHECK: affine.apply #[[AT]](%[[P]], %[[K]])
// CHECK: arith.addi %[[S]],
// CHECK: affine.store %{{.*}}, %t_parts[%[[P]]]
// CHECK: name = "t_parts"
// CHECK: "avial.task"
// CHECK: affine.load %{{.*}}[4]
// CHECK: affine.store %{{.*}}, %t_before[0]
// CHECK: affine.for %[[N:.*]] = 1 to 262 {
// CHECK: affine.store %{{.*}}, %t_before[%[[N]]]
// CHECK: name = "t_before"
// CHECK: affine.for %[[I:.*]] = 2 to 2095 {
// CHECK: affine.load %t_before[(%[[I]] - 2) floordiv 8]
// CHECK: name = "t_sum"
func.func @running_sum(%x: memref<2100xi64>, %s: memref<2100xi64>) {
  %0 = builtin.unrealized_conversion_cast %x : memref<2100xi64> to !avial.buffer_ref
  %1 = builtin.unrealized_conversion_cast %s : memref<2100xi64> to !avial.buffer_ref
  "avial.schedule"(%0, %1) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %t = "avial.task"(%cpu, %1, %0, %1) ({
      affine.for %i = 2 to 2095 {
        %b = affine.load %s[%i + 2] : memref<2100xi64>
        %n = affine.load %x[%i + 1] : memref<2100xi64>
        %v = arith.addi %b, %n : i64
        affine.store %v, %s[%i + 3] : memref<2100xi64>
      }
      omp.terminator
    }) {name = "t", operandSegmentSizes = array<i32: 1, 2, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @running_maximum(
// CHECK: arith.maxsi
// CHECK: name = "t_sum"
func.func @running_maximum(%x: memref<2100xi32>, %s: memref<2100xi32>) {
  %0 = builtin.unrealized_conversion_cast %x : memref<2100xi32> to !avial.buffer_ref
  %1 = builtin.unrealized_conversion_cast %s : memref<2100xi32> to !avial.buffer_ref
  "avial.schedule"(%0, %1) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %t = "avial.task"(%cpu, %1, %0, %1) ({
      affine.for %i = 1 to 2100 {
        %b = affine.load %s[%i - 1] : memref<2100xi32>
        %n = affine.load %x[%i] : memref<2100xi32>
        %v = arith.maxsi %n, %b : i32
        affine.store %v, %s[%i] : memref<2100xi32>
      }
      omp.terminator
    }) {name = "t", operandSegmentSizes = array<i32: 1, 2, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// Too few terms for a GPU.

// CHECK-LABEL: func.func @few(
// CHECK-NOT: memref.alloc
func.func @few(%x: memref<2100xi32>, %s: memref<2100xi32>) {
  %0 = builtin.unrealized_conversion_cast %x : memref<2100xi32> to !avial.buffer_ref
  %1 = builtin.unrealized_conversion_cast %s : memref<2100xi32> to !avial.buffer_ref
  "avial.schedule"(%0, %1) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %t = "avial.task"(%cpu, %1, %0, %1) ({
      affine.for %i = 1 to 2000 {
        %b = affine.load %s[%i - 1] : memref<2100xi32>
        %n = affine.load %x[%i] : memref<2100xi32>
        %v = arith.addi %b, %n : i32
        affine.store %v, %s[%i] : memref<2100xi32>
      }
      omp.terminator
    }) {name = "t", operandSegmentSizes = array<i32: 1, 2, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// Each element is of the last but one.

// CHECK-LABEL: func.func @two_chains(
// CHECK-NOT: memref.alloc
func.func @two_chains(%x: memref<2100xi32>, %s: memref<2100xi32>) {
  %0 = builtin.unrealized_conversion_cast %x : memref<2100xi32> to !avial.buffer_ref
  %1 = builtin.unrealized_conversion_cast %s : memref<2100xi32> to !avial.buffer_ref
  "avial.schedule"(%0, %1) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %t = "avial.task"(%cpu, %1, %0, %1) ({
      affine.for %i = 2 to 2100 {
        %b = affine.load %s[%i - 2] : memref<2100xi32>
        %n = affine.load %x[%i] : memref<2100xi32>
        %v = arith.addi %b, %n : i32
        affine.store %v, %s[%i] : memref<2100xi32>
      }
      omp.terminator
    }) {name = "t", operandSegmentSizes = array<i32: 1, 2, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// What is taken away is no term of a sum.

// CHECK-LABEL: func.func @differences(
// CHECK-NOT: memref.alloc
func.func @differences(%x: memref<2100xi32>, %s: memref<2100xi32>) {
  %0 = builtin.unrealized_conversion_cast %x : memref<2100xi32> to !avial.buffer_ref
  %1 = builtin.unrealized_conversion_cast %s : memref<2100xi32> to !avial.buffer_ref
  "avial.schedule"(%0, %1) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %t = "avial.task"(%cpu, %1, %0, %1) ({
      affine.for %i = 1 to 2100 {
        %b = affine.load %s[%i - 1] : memref<2100xi32>
        %n = affine.load %x[%i] : memref<2100xi32>
        %v = arith.subi %n, %b : i32
        affine.store %v, %s[%i] : memref<2100xi32>
      }
      omp.terminator
    }) {name = "t", operandSegmentSizes = array<i32: 1, 2, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}
