// RUN: -p keep-on-one{ranks=2}
// ON: x86_64 avx fma

// Half of three arrays would be sent: one rank is sooner done with all of it.

// CHECK-LABEL: func.func @turned(
// CHECK-SAME: %[[A:.*]]: memref<1000x1000xf64>, %[[B:.*]]: memref<1000x1000xf64>, %[[D:.*]]: memref<1000x1000xf64>, %[[E:.*]]: memref<1000x1000xf64>, %[[C:.*]]: memref<1000x1000xf64>) {
// CHECK-NEXT: %[[A0:.*]] = builtin.unrealized_conversion_cast %[[A]] : memref<1000x1000xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[B0:.*]] = builtin.unrealized_conversion_cast %[[B]] : memref<1000x1000xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[D0:.*]] = builtin.unrealized_conversion_cast %[[D]] : memref<1000x1000xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[E0:.*]] = builtin.unrealized_conversion_cast %[[E]] : memref<1000x1000xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[C0:.*]] = builtin.unrealized_conversion_cast %[[C]] : memref<1000x1000xf64> to !avial.buffer_ref
// CHECK-NEXT: "avial.schedule"(%[[A0]], %[[B0]], %[[D0]], %[[E0]], %[[C0]]) ({
// CHECK-NEXT: %[[CPU:.*]] = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
// CHECK-NEXT: %[[S1:.*]] = "avial.replicate"(%[[CPU]], %[[A0]], %[[B0]], %[[D0]], %[[E0]], %[[B0]], %[[D0]], %[[E0]]) ({
// CHECK: } {avial.split = 0 : i64}
// CHECK: }) {avial.owned0 = array<i64: 0, 1000>, name = "S1", operandSegmentSizes = array<i32: 1, 4, 3, 0>} : (
// CHECK-NEXT: %[[S2:.*]] = "avial.replicate"(%[[CPU]], %[[B0]], %[[D0]], %[[E0]], %[[C0]], %[[C0]]) ({
// CHECK: } {avial.split = 0 : i64}
// CHECK: }) {avial.owned0 = array<i64: 0, 1000>, name = "S2", operandSegmentSizes = array<i32: 1, 4, 1, 0>} : (
// CHECK: }) {avial.alone = "{{.*}}"} : (
// CHECK-NEXT: return
func.func @turned(%A: memref<1000x1000xf64>, %B: memref<1000x1000xf64>, %D: memref<1000x1000xf64>, %E: memref<1000x1000xf64>, %C: memref<1000x1000xf64>) {
  %a0 = builtin.unrealized_conversion_cast %A : memref<1000x1000xf64> to !avial.buffer_ref
  %b0 = builtin.unrealized_conversion_cast %B : memref<1000x1000xf64> to !avial.buffer_ref
  %d0 = builtin.unrealized_conversion_cast %D : memref<1000x1000xf64> to !avial.buffer_ref
  %e0 = builtin.unrealized_conversion_cast %E : memref<1000x1000xf64> to !avial.buffer_ref
  %c0 = builtin.unrealized_conversion_cast %C : memref<1000x1000xf64> to !avial.buffer_ref
  "avial.schedule"(%a0, %b0, %d0, %e0, %c0) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %S1 = "avial.replicate"(%cpu, %a0, %b0, %d0, %e0, %b0, %d0, %e0) ({
      affine.for %i = 0 to 1000 {
        affine.for %j = 1 to 1000 {
          %e = affine.load %A[%i, %j] : memref<1000x1000xf64>
          %lB = affine.load %B[%i, %j - 1] : memref<1000x1000xf64>
          %sB = arith.addf %e, %lB : f64
          affine.store %sB, %B[%i, %j] : memref<1000x1000xf64>
          %lD = affine.load %D[%i, %j - 1] : memref<1000x1000xf64>
          %sD = arith.addf %e, %lD : f64
          affine.store %sD, %D[%i, %j] : memref<1000x1000xf64>
          %lE = affine.load %E[%i, %j - 1] : memref<1000x1000xf64>
          %sE = arith.addf %e, %lE : f64
          affine.store %sE, %E[%i, %j] : memref<1000x1000xf64>
        }
      } {avial.split = 0 : i64}
      omp.terminator
    }) {name = "S1", avial.owned0 = array<i64: 0, 1000>, operandSegmentSizes = array<i32: 1, 4, 3, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    %S2 = "avial.replicate"(%cpu, %b0, %d0, %e0, %c0, %c0) ({
      affine.for %i = 0 to 1000 {
        affine.for %j = 1 to 1000 {
          %l = affine.load %C[%i, %j - 1] : memref<1000x1000xf64>
          %eB = affine.load %B[%j, %i] : memref<1000x1000xf64>
          %sB = arith.addf %l, %eB : f64
          %eD = affine.load %D[%j, %i] : memref<1000x1000xf64>
          %sD = arith.addf %sB, %eD : f64
          %eE = affine.load %E[%j, %i] : memref<1000x1000xf64>
          %sE = arith.addf %sD, %eE : f64
          affine.store %sE, %C[%i, %j] : memref<1000x1000xf64>
        }
      } {avial.split = 0 : i64}
      omp.terminator
    }) {name = "S2", avial.owned0 = array<i64: 0, 1000>, operandSegmentSizes = array<i32: 1, 4, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// Every part stays where it is.

// CHECK-LABEL: func.func @leaves_rows(
// CHECK-SAME: %[[A:.*]]: memref<1000x1000xf64>, %[[B:.*]]: memref<1000x1000xf64>, %[[D:.*]]: memref<1000x1000xf64>, %[[E:.*]]: memref<1000x1000xf64>, %[[C:.*]]: memref<1000x1000xf64>) {
// CHECK-NEXT: %[[A0:.*]] = builtin.unrealized_conversion_cast %[[A]] : memref<1000x1000xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[B0:.*]] = builtin.unrealized_conversion_cast %[[B]] : memref<1000x1000xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[D0:.*]] = builtin.unrealized_conversion_cast %[[D]] : memref<1000x1000xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[E0:.*]] = builtin.unrealized_conversion_cast %[[E]] : memref<1000x1000xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[C0:.*]] = builtin.unrealized_conversion_cast %[[C]] : memref<1000x1000xf64> to !avial.buffer_ref
// CHECK-NEXT: "avial.schedule"(%[[A0]], %[[B0]], %[[D0]], %[[E0]], %[[C0]]) ({
// CHECK-NEXT: %[[CPU:.*]] = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
// CHECK-NEXT: %[[S1:.*]] = "avial.replicate"(%[[CPU]], %[[A0]], %[[B0]], %[[D0]], %[[E0]], %[[B0]], %[[D0]], %[[E0]]) ({
// CHECK: } {avial.split = 0 : i64}
// CHECK: }) {avial.owned0 = array<i64: 0, 1000>, name = "S1", operandSegmentSizes = array<i32: 1, 4, 3, 0>} : (
// CHECK-NEXT: %[[S2:.*]] = "avial.replicate"(%[[CPU]], %[[B0]], %[[D0]], %[[E0]], %[[C0]], %[[C0]]) ({
// CHECK: } {avial.split = 0 : i64}
// CHECK: }) {avial.owned0 = array<i64: 0, 1000>, name = "S2", operandSegmentSizes = array<i32: 1, 4, 1, 0>} : (
// CHECK: }) : (
// CHECK-NEXT: return
func.func @leaves_rows(%A: memref<1000x1000xf64>, %B: memref<1000x1000xf64>, %D: memref<1000x1000xf64>, %E: memref<1000x1000xf64>, %C: memref<1000x1000xf64>) {
  %a0 = builtin.unrealized_conversion_cast %A : memref<1000x1000xf64> to !avial.buffer_ref
  %b0 = builtin.unrealized_conversion_cast %B : memref<1000x1000xf64> to !avial.buffer_ref
  %d0 = builtin.unrealized_conversion_cast %D : memref<1000x1000xf64> to !avial.buffer_ref
  %e0 = builtin.unrealized_conversion_cast %E : memref<1000x1000xf64> to !avial.buffer_ref
  %c0 = builtin.unrealized_conversion_cast %C : memref<1000x1000xf64> to !avial.buffer_ref
  "avial.schedule"(%a0, %b0, %d0, %e0, %c0) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %S1 = "avial.replicate"(%cpu, %a0, %b0, %d0, %e0, %b0, %d0, %e0) ({
      affine.for %i = 0 to 1000 {
        affine.for %j = 1 to 1000 {
          %e = affine.load %A[%i, %j] : memref<1000x1000xf64>
          %lB = affine.load %B[%i, %j - 1] : memref<1000x1000xf64>
          %sB = arith.addf %e, %lB : f64
          affine.store %sB, %B[%i, %j] : memref<1000x1000xf64>
          %lD = affine.load %D[%i, %j - 1] : memref<1000x1000xf64>
          %sD = arith.addf %e, %lD : f64
          affine.store %sD, %D[%i, %j] : memref<1000x1000xf64>
          %lE = affine.load %E[%i, %j - 1] : memref<1000x1000xf64>
          %sE = arith.addf %e, %lE : f64
          affine.store %sE, %E[%i, %j] : memref<1000x1000xf64>
        }
      } {avial.split = 0 : i64}
      omp.terminator
    }) {name = "S1", avial.owned0 = array<i64: 0, 1000>, operandSegmentSizes = array<i32: 1, 4, 3, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    %S2 = "avial.replicate"(%cpu, %b0, %d0, %e0, %c0, %c0) ({
      affine.for %i = 0 to 1000 {
        affine.for %j = 1 to 1000 {
          %l = affine.load %C[%i, %j - 1] : memref<1000x1000xf64>
          %eB = affine.load %B[%i, %j] : memref<1000x1000xf64>
          %sB = arith.addf %l, %eB : f64
          %eD = affine.load %D[%i, %j] : memref<1000x1000xf64>
          %sD = arith.addf %sB, %eD : f64
          %eE = affine.load %E[%i, %j] : memref<1000x1000xf64>
          %sE = arith.addf %sD, %eE : f64
          affine.store %sE, %C[%i, %j] : memref<1000x1000xf64>
        }
      } {avial.split = 0 : i64}
      omp.terminator
    }) {name = "S2", avial.owned0 = array<i64: 0, 1000>, operandSegmentSizes = array<i32: 1, 4, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// Over soon in any case.

// CHECK-LABEL: func.func @leaves_little(
// CHECK-SAME: %[[A:.*]]: memref<100x100xf64>, %[[B:.*]]: memref<100x100xf64>, %[[D:.*]]: memref<100x100xf64>, %[[E:.*]]: memref<100x100xf64>, %[[C:.*]]: memref<100x100xf64>) {
// CHECK-NEXT: %[[A0:.*]] = builtin.unrealized_conversion_cast %[[A]] : memref<100x100xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[B0:.*]] = builtin.unrealized_conversion_cast %[[B]] : memref<100x100xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[D0:.*]] = builtin.unrealized_conversion_cast %[[D]] : memref<100x100xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[E0:.*]] = builtin.unrealized_conversion_cast %[[E]] : memref<100x100xf64> to !avial.buffer_ref
// CHECK-NEXT: %[[C0:.*]] = builtin.unrealized_conversion_cast %[[C]] : memref<100x100xf64> to !avial.buffer_ref
// CHECK-NEXT: "avial.schedule"(%[[A0]], %[[B0]], %[[D0]], %[[E0]], %[[C0]]) ({
// CHECK-NEXT: %[[CPU:.*]] = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
// CHECK-NEXT: %[[S1:.*]] = "avial.replicate"(%[[CPU]], %[[A0]], %[[B0]], %[[D0]], %[[E0]], %[[B0]], %[[D0]], %[[E0]]) ({
// CHECK: } {avial.split = 0 : i64}
// CHECK: }) {avial.owned0 = array<i64: 0, 100>, name = "S1", operandSegmentSizes = array<i32: 1, 4, 3, 0>} : (
// CHECK-NEXT: %[[S2:.*]] = "avial.replicate"(%[[CPU]], %[[B0]], %[[D0]], %[[E0]], %[[C0]], %[[C0]]) ({
// CHECK: } {avial.split = 0 : i64}
// CHECK: }) {avial.owned0 = array<i64: 0, 100>, name = "S2", operandSegmentSizes = array<i32: 1, 4, 1, 0>} : (
// CHECK: }) : (
// CHECK-NEXT: return
func.func @leaves_little(%A: memref<100x100xf64>, %B: memref<100x100xf64>, %D: memref<100x100xf64>, %E: memref<100x100xf64>, %C: memref<100x100xf64>) {
  %a0 = builtin.unrealized_conversion_cast %A : memref<100x100xf64> to !avial.buffer_ref
  %b0 = builtin.unrealized_conversion_cast %B : memref<100x100xf64> to !avial.buffer_ref
  %d0 = builtin.unrealized_conversion_cast %D : memref<100x100xf64> to !avial.buffer_ref
  %e0 = builtin.unrealized_conversion_cast %E : memref<100x100xf64> to !avial.buffer_ref
  %c0 = builtin.unrealized_conversion_cast %C : memref<100x100xf64> to !avial.buffer_ref
  "avial.schedule"(%a0, %b0, %d0, %e0, %c0) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %S1 = "avial.replicate"(%cpu, %a0, %b0, %d0, %e0, %b0, %d0, %e0) ({
      affine.for %i = 0 to 100 {
        affine.for %j = 1 to 100 {
          %e = affine.load %A[%i, %j] : memref<100x100xf64>
          %lB = affine.load %B[%i, %j - 1] : memref<100x100xf64>
          %sB = arith.addf %e, %lB : f64
          affine.store %sB, %B[%i, %j] : memref<100x100xf64>
          %lD = affine.load %D[%i, %j - 1] : memref<100x100xf64>
          %sD = arith.addf %e, %lD : f64
          affine.store %sD, %D[%i, %j] : memref<100x100xf64>
          %lE = affine.load %E[%i, %j - 1] : memref<100x100xf64>
          %sE = arith.addf %e, %lE : f64
          affine.store %sE, %E[%i, %j] : memref<100x100xf64>
        }
      } {avial.split = 0 : i64}
      omp.terminator
    }) {name = "S1", avial.owned0 = array<i64: 0, 100>, operandSegmentSizes = array<i32: 1, 4, 3, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    %S2 = "avial.replicate"(%cpu, %b0, %d0, %e0, %c0, %c0) ({
      affine.for %i = 0 to 100 {
        affine.for %j = 1 to 100 {
          %l = affine.load %C[%i, %j - 1] : memref<100x100xf64>
          %eB = affine.load %B[%j, %i] : memref<100x100xf64>
          %sB = arith.addf %l, %eB : f64
          %eD = affine.load %D[%j, %i] : memref<100x100xf64>
          %sD = arith.addf %sB, %eD : f64
          %eE = affine.load %E[%j, %i] : memref<100x100xf64>
          %sE = arith.addf %sD, %eE : f64
          affine.store %sE, %C[%i, %j] : memref<100x100xf64>
        }
      } {avial.split = 0 : i64}
      omp.terminator
    }) {name = "S2", avial.owned0 = array<i64: 0, 100>, operandSegmentSizes = array<i32: 1, 4, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}
