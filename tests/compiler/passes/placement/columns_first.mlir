// RUN: -p columns-first{on=gpu}

// What a row does before it adds is a replicate of its own; then columns are divided.

// CHECK-LABEL: func.func @atax(
// CHECK: "avial.replicate"(%{{.*}}, %[[A:.*]], %[[T:.*]]) ({
// CHECK: affine.for %[[I:.*]] = 0 to 30 {
// CHECK-NOT: affine.for
// CHECK: affine.store %{{.*}}, %{{.*}}[%[[I]]]
// CHECK: } {avial.split = 0 : i64}
// CHECK: avial.why = ["iterations of
// CHECK-SAME: name = "r_rows"
// CHECK: "avial.replicate"
// CHECK: affine.for %[[J:.*]] = 0 to 40 {
// CHECK: affine.for %[[K:.*]] = 0 to 30 {
// CHECK: affine.load %{{.*}}[%[[K]]] : memref<30xf64>
// CHECK: affine.load %{{.*}}[%[[K]], %[[J]]]
// CHECK: affine.store %{{.*}}, %{{.*}}[%[[J]]] : memref<40xf64>
// CHECK: } {avial.split = 0 : i64}
// CHECK-NOT: avial.reduced
func.func @atax(%A: memref<30x40xf64>, %t: memref<30xf64>, %y: memref<40xf64>) {
  %0 = builtin.unrealized_conversion_cast %A : memref<30x40xf64> to !avial.buffer_ref
  %1 = builtin.unrealized_conversion_cast %t : memref<30xf64> to !avial.buffer_ref
  %2 = builtin.unrealized_conversion_cast %y : memref<40xf64> to !avial.buffer_ref
  "avial.schedule"(%0, %1, %2) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %r = "avial.replicate"(%cpu, %0, %1, %2, %1, %2) ({
      affine.for %i = 0 to 30 {
        %d = affine.load %A[%i, 3] : memref<30x40xf64>
        %e = arith.addf %d, %d : f64
        affine.store %e, %t[%i] : memref<30xf64>
        affine.for %j = 0 to 40 {
          %s = affine.load %t[%i] : memref<30xf64>
          %a = affine.load %A[%i, %j] : memref<30x40xf64>
          %b = affine.load %y[%j] : memref<40xf64>
          %c = math.fma %a, %s, %b : f64
          affine.store %c, %y[%j] : memref<40xf64>
        }
      } {avial.split = 0 : i64}
      omp.terminator
    }) {avial.owned0 = array<i64: 0, 30>, avial.reduced = array<i64: 5>, avial.reordered = 30 : i64, avial.why = [], name = "r", operandSegmentSizes = array<i32: 1, 3, 2, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// What a row keeps beside its sums, and sums of another loop, are replicates of their own, too.

// CHECK-LABEL: func.func @bicg(
// CHECK: "avial.replicate"(%{{.*}}, %{{.*}}, %[[Q:.*]], %[[Q]]) ({
// CHECK: affine.for %[[I:.*]] = 0 to 30 {
// CHECK: affine.for %[[J:.*]] = 0 to 40 {
// CHECK-COUNT-1: affine.store %{{.*}}, %{{.*}}[%[[I]]]
// CHECK: name = "r_rows"
// CHECK: affine.for %[[K:.*]] = 0 to 40 {
// CHECK: affine.for %{{.*}} = 0 to 30 {
// CHECK-COUNT-1: affine.store %{{.*}}, %{{.*}}[%[[K]]]
// CHECK: name = "r_1"
// CHECK: affine.for %[[L:.*]] = 0 to 20 {
// CHECK: affine.for %{{.*}} = 0 to 30 {
// CHECK-COUNT-1: affine.store %{{.*}}, %{{.*}}[%[[L]]]
// CHECK: name = "r"
// CHECK-NOT: avial.reduced
func.func @bicg(%A: memref<30x40xf64>, %q: memref<30xf64>, %y: memref<40xf64>, %z: memref<20xf64>) {
  %0 = builtin.unrealized_conversion_cast %A : memref<30x40xf64> to !avial.buffer_ref
  %1 = builtin.unrealized_conversion_cast %q : memref<30xf64> to !avial.buffer_ref
  %2 = builtin.unrealized_conversion_cast %y : memref<40xf64> to !avial.buffer_ref
  %3 = builtin.unrealized_conversion_cast %z : memref<20xf64> to !avial.buffer_ref
  "avial.schedule"(%0, %1, %2, %3) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %r = "avial.replicate"(%cpu, %0, %1, %2, %3, %1, %2, %3) ({
      affine.for %i = 0 to 30 {
        affine.for %j = 0 to 40 {
          %a = affine.load %A[%i, %j] : memref<30x40xf64>
          %b = affine.load %y[%j] : memref<40xf64>
          %c = arith.addf %a, %b : f64
          affine.store %c, %y[%j] : memref<40xf64>
          %d = affine.load %q[%i] : memref<30xf64>
          %e = arith.addf %a, %d : f64
          affine.store %e, %q[%i] : memref<30xf64>
        }
        affine.for %j = 0 to 20 {
          %a = affine.load %A[%i, %j] : memref<30x40xf64>
          %b = affine.load %z[%j] : memref<20xf64>
          %c = arith.addf %a, %b : f64
          affine.store %c, %z[%j] : memref<20xf64>
        }
      } {avial.split = 0 : i64}
      omp.terminator
    }) {avial.reduced = array<i64: 6, 7>, avial.why = [], name = "r", operandSegmentSizes = array<i32: 1, 4, 3, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// A row that changes what it adds stays as it is, and so does one element.

// CHECK-LABEL: func.func @stay(
// CHECK-COUNT-2: avial.reduced
func.func @stay(%A: memref<30x40xf64>, %q: memref<30xf64>, %y: memref<40xf64>) {
  %0 = builtin.unrealized_conversion_cast %A : memref<30x40xf64> to !avial.buffer_ref
  %1 = builtin.unrealized_conversion_cast %q : memref<30xf64> to !avial.buffer_ref
  %2 = builtin.unrealized_conversion_cast %y : memref<40xf64> to !avial.buffer_ref
  "avial.schedule"(%0, %1, %2) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %r = "avial.replicate"(%cpu, %0, %1, %2, %1, %2) ({
      affine.for %i = 0 to 30 {
        affine.for %j = 0 to 40 {
          %a = affine.load %A[%i, %j] : memref<30x40xf64>
          %b = affine.load %y[%j] : memref<40xf64>
          %d = affine.load %q[%i] : memref<30xf64>
          %c = arith.addf %d, %b : f64
          affine.store %c, %y[%j] : memref<40xf64>
          %e = arith.addf %a, %d : f64
          affine.store %e, %q[%i] : memref<30xf64>
        }
      } {avial.split = 0 : i64}
      omp.terminator
    }) {avial.reduced = array<i64: 5>, avial.why = [], name = "r", operandSegmentSizes = array<i32: 1, 3, 2, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    %p = "avial.replicate"(%cpu, %0, %2, %2) ({
      affine.for %i = 0 to 30 {
        affine.for %j = 0 to 40 {
          %a = affine.load %A[%i, %j] : memref<30x40xf64>
          %b = affine.load %y[7] : memref<40xf64>
          %c = arith.addf %a, %b : f64
          affine.store %c, %y[7] : memref<40xf64>
        }
      } {avial.split = 0 : i64}
      omp.terminator
    }) {avial.reduced = array<i64: 3>, avial.why = [], name = "p", operandSegmentSizes = array<i32: 1, 2, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}
