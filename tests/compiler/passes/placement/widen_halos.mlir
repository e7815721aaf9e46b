// RUN: -p widen-halos{steps=4}

// Two sweeps of a step, each of which needs a row more on either side.

// CHECK-LABEL: func.func @there_and_back
// CHECK: "avial.converge"() ({
// CHECK-NEXT: affine.for %[[BLOCK:.*]] = 0 to 3 {
// CHECK-NEXT: "avial.replicate"
// CHECK-NEXT: affine.for %{{.*}} = 0 to 4 {
// CHECK-NEXT: affine.for %{{.*}} = 1 to 99 {
// CHECK: } {avial.lean = array<i64: 7, 7, 2, 2>, avial.split = 0 : i64}
// CHECK: affine.for %{{.*}} = 1 to 99 {
// CHECK: } {avial.lean = array<i64: 6, 6, 2, 2>, avial.split = 0 : i64}
// CHECK: }) {avial.bounds0 = array<i64: 1, 99, 1>, avial.fused = ["S1", "S2"], avial.halo = array<i64: 7, 7>
// What is left of the steps goes on one by one.
// CHECK: affine.for %{{.*}} = 12 to 15 {
// CHECK-NEXT: "avial.replicate"
// CHECK-NOT: avial.halo
func.func @there_and_back(%A: memref<100xf64>, %B: memref<100xf64>) {
  %a = builtin.unrealized_conversion_cast %A : memref<100xf64> to !avial.buffer_ref
  %b = builtin.unrealized_conversion_cast %B : memref<100xf64> to !avial.buffer_ref
  "avial.schedule"(%a, %b) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %c = "avial.converge"() ({
      affine.for %t = 0 to 15 {
        %1 = "avial.replicate"(%cpu, %a, %b) ({
          affine.for %i = 1 to 99 {
            %l = affine.load %A[%i - 1] : memref<100xf64>
            %r = affine.load %A[%i + 1] : memref<100xf64>
            %s = arith.addf %l, %r : f64
            affine.store %s, %B[%i] : memref<100xf64>
          } {avial.split = 0 : i64}
          omp.terminator
        }) {name = "S1", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
        %2 = "avial.replicate"(%cpu, %b, %a) ({
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

// The number of the step is told where it is asked for; what comes from one side needs a halo there.

// CHECK: #[[STEP:.*]] = affine_map<(d0, d1) -> (d0 * 4 + d1 + 2)>
// CHECK-LABEL: func.func @from_one_side
// CHECK: affine.for %[[BLOCK:.*]] = 0 to 2 {
// CHECK-NEXT: "avial.replicate"
// CHECK-NEXT: affine.for %[[K:.*]] = 0 to 4 {
// CHECK-NEXT: %[[T:.*]] = affine.apply #[[STEP]](%[[BLOCK]], %[[K]])
// CHECK: arith.index_cast %[[T]]
// CHECK: } {avial.lean = array<i64: 3, 0, 1, 0>, avial.split = 0 : i64}
func.func @from_one_side(%A: memref<100xf64>, %B: memref<100xf64>) {
  %a = builtin.unrealized_conversion_cast %A : memref<100xf64> to !avial.buffer_ref
  %b = builtin.unrealized_conversion_cast %B : memref<100xf64> to !avial.buffer_ref
  "avial.schedule"(%a, %b) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %c = "avial.converge"() ({
      affine.for %t = 2 to 10 {
        %1 = "avial.replicate"(%cpu, %a, %b) ({
          affine.for %i = 1 to 99 {
            %n = arith.index_cast %t : index to i64
            %x = arith.sitofp %n : i64 to f64
            %l = affine.load %A[%i - 1] : memref<100xf64>
            %s = arith.addf %l, %x : f64
            affine.store %s, %B[%i] : memref<100xf64>
          } {avial.split = 0 : i64}
          omp.terminator
        }) {name = "S1", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
        %2 = "avial.replicate"(%cpu, %b, %a) ({
          affine.for %i = 1 to 99 {
            %v = affine.load %B[%i] : memref<100xf64>
            affine.store %v, %A[%i] : memref<100xf64>
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

// Where no rank reads what another one computes there is nothing to widen, and it is told.

// CHECK-LABEL: func.func @each_for_itself
// CHECK: affine.for %{{.*}} = 0 to 15 {
// CHECK-NOT: avial.halo
// CHECK: avial.done = ["widen-halos: loop (unnamed) exchanges halos after each step: no rank reads what another one computes"]
func.func @each_for_itself(%A: memref<100xf64>) {
  %a = builtin.unrealized_conversion_cast %A : memref<100xf64> to !avial.buffer_ref
  "avial.schedule"(%a) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %c = "avial.converge"() ({
      affine.for %t = 0 to 15 {
        %1 = "avial.replicate"(%cpu, %a, %a) ({
          affine.for %i = 0 to 100 {
            %l = affine.load %A[%i] : memref<100xf64>
            %s = arith.addf %l, %l : f64
            affine.store %s, %A[%i] : memref<100xf64>
          } {avial.split = 0 : i64}
          omp.terminator
        }) {name = "S1", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
      }
      omp.terminator
    }) {name = "loop1", operandSegmentSizes = array<i32: 0, 0>} : () -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref) -> ()
  return
}

// -----

// What each step reads of others hangs on no neighbour's steps before: the halo is as wide for many steps as for one.

// CHECK-LABEL: func.func @as_wide_for_all_steps
// CHECK: affine.for %{{.*}} = 1 to 99 {
// CHECK: } {avial.lean = array<i64: 0, 0, 0, 0>, avial.split = 0 : i64}
// CHECK: affine.for %{{.*}} = 0 to 100 {
// CHECK: } {avial.lean = array<i64: 1, 1, 0, 0>, avial.split = 0 : i64}
// CHECK: avial.halo = array<i64: 1, 1>
func.func @as_wide_for_all_steps(%A: memref<100xf64>, %B: memref<100xf64>) {
  %a = builtin.unrealized_conversion_cast %A : memref<100xf64> to !avial.buffer_ref
  %b = builtin.unrealized_conversion_cast %B : memref<100xf64> to !avial.buffer_ref
  "avial.schedule"(%a, %b) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %c = "avial.converge"() ({
      affine.for %t = 0 to 15 {
        %1 = "avial.replicate"(%cpu, %a, %b, %b) ({
          affine.for %i = 1 to 99 {
            %l = affine.load %A[%i - 1] : memref<100xf64>
            %r = affine.load %A[%i + 1] : memref<100xf64>
            %s = arith.addf %l, %r : f64
            %o = affine.load %B[%i] : memref<100xf64>
            %n = arith.addf %o, %s : f64
            affine.store %n, %B[%i] : memref<100xf64>
          } {avial.split = 0 : i64}
          omp.terminator
        }) {name = "S1", operandSegmentSizes = array<i32: 1, 2, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
        %2 = "avial.replicate"(%cpu, %a, %a) ({
          affine.for %i = 0 to 100 {
            %l = affine.load %A[%i] : memref<100xf64>
            %s = arith.addf %l, %l : f64
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
