// RUN: -p sums-in-blocks{on=gpu}

// Threads beside each other have neighbours; who is last may have fewer terms.

// CHECK: #[[LEFT:.*]] = affine_map<(d0, d1) -> (8, (d0 * -2048 - d1 + 3255) floordiv 256)>
// CHECK: #[[AT:.*]] = affine_map<(d0, d1, d2) -> (d0 * 2048 + d2 * 256 + d1 + 7)>
// CHECK-LABEL: func.func @dot(
// CHECK: %[[PARTS:.*]] = memref.alloc() : memref<512xf64>
// CHECK: "avial.replicate"
// CHECK: affine.for %[[G:.*]] = 0 to 2 {
// CHECK: affine.for %[[T:.*]] = 0 to 256 {
// CHECK: %[[NONE:.*]] = arith.constant -0.0
// CHECK: %[[SUM:.*]] = affine.for %[[K:.*]] = 0 to min #[[LEFT]](%[[G]], %[[T]]) iter_args(%[[A:.*]] = %[[NONE]]) -> (f64) {
// CHECK: %[[I:.*]] = affine.apply #[[AT]](%[[G]], %[[T]], %[[K]])
// CHECK: %[[P:.*]] = affine.load %{{.*}}[%[[I]]]
// CHECK: %[[MORE:.*]] = math.fma %[[P]], %{{.*}}, %[[A]]
// CHECK: affine.yield %[[MORE]]
// CHECK: affine.store %[[SUM]], %[[PARTS]][%[[G]] * 256 + %[[T]]]
// CHECK: {avial.split = 0 : i64}
// CHECK: "avial.replicate"
// CHECK: name = "r_again"
// CHECK: affine.for %{{.*}} = 0 to 1 {
// CHECK: affine.for %{{.*}} = 0 to 16 {
// CHECK: name = "r_again1"
// CHECK: affine.for %{{.*}} = 0 to 1 {
// CHECK: %[[S:.*]] = affine.load %{{.*}}[0]
// CHECK: %[[ALL:.*]] = affine.for %[[M:.*]] = 0 to 16 iter_args(%[[SO:.*]] = %[[S]]) -> (f64) {
// CHECK: %[[PART:.*]] = affine.load %{{.*}}[%[[M]]]
// CHECK: %[[BOTH:.*]] = arith.addf %[[SO]], %[[PART]]
// CHECK: affine.store %[[ALL]], %{{.*}}[0]
// CHECK: name = "r_sum"
// CHECK-NOT: avial.reduced
func.func @dot(%x: memref<3010xf64>, %y: memref<3010xf64>, %s: memref<1xf64>) {
  %0 = builtin.unrealized_conversion_cast %x : memref<3010xf64> to !avial.buffer_ref
  %1 = builtin.unrealized_conversion_cast %y : memref<3010xf64> to !avial.buffer_ref
  %2 = builtin.unrealized_conversion_cast %s : memref<1xf64> to !avial.buffer_ref
  "avial.schedule"(%0, %1, %2) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %r = "avial.replicate"(%cpu, %0, %1, %2, %2) ({
      affine.for %i = 7 to 3007 {
        %p = affine.load %x[%i] : memref<3010xf64>
        %q = affine.load %y[%i] : memref<3010xf64>
        %t = affine.load %s[0] : memref<1xf64>
        %u = math.fma %p, %q, %t : f64
        affine.store %u, %s[0] : memref<1xf64>
      } {avial.split = 0 : i64}
      omp.terminator
    }) {avial.owned0 = array<i64: 0, 3010>, avial.reduced = array<i64: 4>, avial.why = [], name = "r", operandSegmentSizes = array<i32: 1, 3, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// Of many partial results a second pass makes few.

// CHECK-LABEL: func.func @least(
// CHECK-DAG: memref.alloc() : memref<12544xf32>
// CHECK-DAG: memref.alloc() : memref<512xf32>
// CHECK: affine.for %{{.*}} = 0 to 49 {
// CHECK: arith.minimumf
// CHECK: affine.for %{{.*}} = 0 to 2 {
// CHECK: arith.minimumf
// CHECK: affine.for %{{.*}} = 0 to 1 {
// CHECK: affine.for %{{.*}} = 0 to 256 {
// CHECK: affine.for %{{.*}} = 0 to 1 {
// CHECK: affine.for %{{.*}} = 0 to 16 {
// CHECK: affine.for %{{.*}} = 0 to 1 {
// CHECK: arith.minimumf
func.func @least(%x: memref<100000xf32>, %s: memref<1xf32>) {
  %0 = builtin.unrealized_conversion_cast %x : memref<100000xf32> to !avial.buffer_ref
  %2 = builtin.unrealized_conversion_cast %s : memref<1xf32> to !avial.buffer_ref
  "avial.schedule"(%0, %2) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %r = "avial.replicate"(%cpu, %0, %2, %2) ({
      affine.for %i = 0 to 100000 {
        %p = affine.load %x[%i] : memref<100000xf32>
        %t = affine.load %s[0] : memref<1xf32>
        %u = arith.minimumf %p, %t : f32
        affine.store %u, %s[0] : memref<1xf32>
      } {avial.split = 0 : i64}
      omp.terminator
    }) {avial.owned0 = array<i64: 0, 100000>, avial.reduced = array<i64: 3>, avial.why = [], name = "r", operandSegmentSizes = array<i32: 1, 2, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// Two sums of a nest; the numbers of its iterations are divided.

// CHECK: affine_map<(d0, d1, d2) -> ((d0 * 2048 + d2 * 256 + d1) floordiv 40 + 2)>
// CHECK: affine_map<(d0, d1, d2) -> ((d0 * 2048 + d2 * 256 + d1) mod 40)>
// CHECK-LABEL: func.func @norms(
// CHECK: iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f64, i32) {
// CHECK: arith.addf
// CHECK: arith.maxsi
// CHECK-NOT: avial.reduced
func.func @norms(%x: memref<50x40xf64>, %k: memref<50x40xi32>, %s: memref<2xf64>, %m: memref<i32>) {
  %0 = builtin.unrealized_conversion_cast %x : memref<50x40xf64> to !avial.buffer_ref
  %1 = builtin.unrealized_conversion_cast %k : memref<50x40xi32> to !avial.buffer_ref
  %2 = builtin.unrealized_conversion_cast %s : memref<2xf64> to !avial.buffer_ref
  %3 = builtin.unrealized_conversion_cast %m : memref<i32> to !avial.buffer_ref
  "avial.schedule"(%0, %1, %2, %3) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %r = "avial.replicate"(%cpu, %0, %1, %2, %3, %2, %3) ({
      affine.for %i = 2 to 50 {
        affine.for %j = 0 to 40 {
          %p = affine.load %x[%i, %j] : memref<50x40xf64>
          %t = affine.load %s[1] : memref<2xf64>
          %u = arith.addf %t, %p : f64
          affine.store %u, %s[1] : memref<2xf64>
          %q = affine.load %k[%i - 2, %j] : memref<50x40xi32>
          %v = affine.load %m[] : memref<i32>
          %w = arith.maxsi %v, %q : i32
          affine.store %w, %m[] : memref<i32>
        }
      } {avial.split = 0 : i64}
      omp.terminator
    }) {avial.reduced = array<i64: 5, 6>, avial.why = [], name = "r", operandSegmentSizes = array<i32: 1, 4, 2, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// A short sum stays, and one of which each term hangs on the sum so far.

// CHECK-LABEL: func.func @stay(
// CHECK-NOT: memref.alloc
func.func @stay(%x: memref<600xf64>, %s: memref<1xf64>) {
  %0 = builtin.unrealized_conversion_cast %x : memref<600xf64> to !avial.buffer_ref
  %2 = builtin.unrealized_conversion_cast %s : memref<1xf64> to !avial.buffer_ref
  "avial.schedule"(%0, %2) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %r = "avial.replicate"(%cpu, %0, %2, %2) ({
      affine.for %i = 0 to 500 {
        %p = affine.load %x[%i] : memref<600xf64>
        %t = affine.load %s[0] : memref<1xf64>
        %u = arith.addf %p, %t : f64
        affine.store %u, %s[0] : memref<1xf64>
      } {avial.split = 0 : i64}
      omp.terminator
    }) {avial.reduced = array<i64: 3>, avial.why = [], name = "r", operandSegmentSizes = array<i32: 1, 2, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    %q = "avial.replicate"(%cpu, %0, %2, %2) ({
      affine.for %i = 0 to 600 {
        %p = affine.load %x[%i] : memref<600xf64>
        %t = affine.load %s[0] : memref<1xf64>
        %v = arith.mulf %p, %t : f64
        %u = arith.addf %v, %t : f64
        affine.store %u, %s[0] : memref<1xf64>
      } {avial.split = 0 : i64}
      omp.terminator
    }) {avial.reduced = array<i64: 3>, avial.why = [], name = "q", operandSegmentSizes = array<i32: 1, 2, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}
