// RUN: -p sums-in-copies{on=gpu}

// Each thread of a group of 32 has a copy; the last terms are of who comes to them.

// CHECK: #[[AT:.*]] = affine_map<(d0, d1, d2) -> (d0 * 288 + d2 * 32 + d1 + 3)>
// CHECK-LABEL: func.func @histogram(
// CHECK: %[[C:.*]] = memref.alloc() : memref<96x4xi64>
// CHECK: affine.for %[[G:.*]] = 0 to 3 {
// CHECK: affine.for %[[T:.*]] = 0 to 32 {
// CHECK: affine.for %[[E:.*]] = 0 to 4 {
// CHECK: affine.store %{{.*}}, %[[C]][%{{.*}}, %[[E]]]
// CHECK: name = "r_none"
// CHECK: affine.for %[[G:.*]] = 0 to 3 {
// CHECK: affine.for %[[T:.*]] = 0 to 32 {
// CHECK: affine.for %[[K:.*]] = 0 to min
// CHECK: affine.apply #[[AT]](%[[G]], %[[T]], %[[K]])
// CHECK: memref.load %[[C]][%{{.*}}, %[[B:.*]]]
// CHECK: arith.addi
// CHECK: memref.store %{{.*}}, %[[C]][%{{.*}}, %[[B]]]
// CHECK: name = "r_copies"
// CHECK: affine.for %[[E:.*]] = 0 to 4 {
// CHECK: affine.for %[[N:.*]] = 0 to 96 {
// CHECK: affine.load %[[C]][%[[N]], %[[E]]]
// CHECK: name = "r_sum"
// CHECK-NOT: avial.reduced
func.func @histogram(%b: memref<800xi64>, %h: memref<4xi64>) {
  %0 = builtin.unrealized_conversion_cast %b : memref<800xi64> to !avial.buffer_ref
  %1 = builtin.unrealized_conversion_cast %h : memref<4xi64> to !avial.buffer_ref
  "avial.schedule"(%0, %1) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %r = "avial.replicate"(%cpu, %0, %1, %1) ({
      %three = arith.constant 3 : i64
      affine.for %i = 3 to 800 {
        %k = affine.load %b[%i] : memref<800xi64>
        %l = arith.andi %k, %three : i64
        %m = arith.index_cast %l : i64 to index
        %t = memref.load %h[%m] : memref<4xi64>
        %u = arith.addi %t, %k : i64
        memref.store %u, %h[%m] : memref<4xi64>
      } {avial.split = 0 : i64}
      omp.terminator
    }) {avial.reduced = array<i64: 3>, avial.why = [], name = "r", operandSegmentSizes = array<i32: 1, 2, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// Too few terms for the elements; elements that are also read; one that is a sum and a product.

// CHECK-LABEL: func.func @stay(
// CHECK-NOT: memref.alloc
func.func @stay(%b: memref<800xf64>, %h: memref<16xf64>, %z: memref<1xf64>) {
  %0 = builtin.unrealized_conversion_cast %b : memref<800xf64> to !avial.buffer_ref
  %1 = builtin.unrealized_conversion_cast %h : memref<16xf64> to !avial.buffer_ref
  %2 = builtin.unrealized_conversion_cast %z : memref<1xf64> to !avial.buffer_ref
  "avial.schedule"(%0, %1, %2) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %r = "avial.replicate"(%cpu, %0, %1, %1) ({
      affine.for %i = 0 to 800 {
        %k = affine.load %b[%i] : memref<800xf64>
        %t = affine.load %h[%i mod 16] : memref<16xf64>
        %u = arith.addf %t, %k : f64
        affine.store %u, %h[%i mod 16] : memref<16xf64>
      } {avial.split = 0 : i64}
      omp.terminator
    }) {avial.reduced = array<i64: 3>, avial.why = [], name = "r", operandSegmentSizes = array<i32: 1, 2, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    %p = "avial.replicate"(%cpu, %0, %2, %2) ({
      affine.for %i = 0 to 400 {
        %k = affine.load %b[%i] : memref<800xf64>
        %t = affine.load %z[0] : memref<1xf64>
        %u = arith.addf %t, %k : f64
        affine.store %u, %z[0] : memref<1xf64>
        %v = affine.load %b[%i + 400] : memref<800xf64>
        %w = affine.load %z[0] : memref<1xf64>
        %x = arith.mulf %w, %v : f64
        affine.store %x, %z[0] : memref<1xf64>
      } {avial.split = 0 : i64}
      omp.terminator
    }) {avial.reduced = array<i64: 3>, avial.why = [], name = "p", operandSegmentSizes = array<i32: 1, 2, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}
