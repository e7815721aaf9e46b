// RUN: -p replicate-to-mpi

// A phase is a function whose split loop is cut to a range, a function that says what it touches, and
// calls of the runtime around each of this rank's ranges.

// CHECK-LABEL: func.func private @S1.touches(
// CHECK: call @avial_read(
// CHECK: call @avial_write(
// CHECK-LABEL: func.func private @S1(
// CHECK-SAME: %[[A:.*]]: memref<20xf64>, %[[B:.*]]: memref<20xf64>, %[[LOW:.*]]: index, %[[HIGH:.*]]: index, %{{.*}}: index, %{{.*}}: index)
// CHECK: affine.for %{{.*}} = max #{{.*}}()[%[[LOW]]] to min #{{.*}}()[%[[HIGH]]]
// CHECK-LABEL: func.func @main(
// CHECK-SAME: avial.phases = ["S1"], llvm.emit_c_interface
// CHECK: %[[PARTS:.*]] = llvm.call @avial_begin(
// CHECK: scf.for
// CHECK: llvm.call @avial_range(
// CHECK: func.call @S1(
// CHECK: llvm.call @avial_end()
// CHECK-NOT: "avial.
func.func @copy(%A: memref<20xf64> {avial.name = "A"}, %B: memref<20xf64> {avial.name = "B"}) {
  %0 = builtin.unrealized_conversion_cast %A : memref<20xf64> to !avial.buffer_ref
  %1 = builtin.unrealized_conversion_cast %B : memref<20xf64> to !avial.buffer_ref
  "avial.schedule"(%0, %1) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %2 = "avial.replicate"(%cpu, %0, %1) ({
      affine.for %i = 1 to 19 {
        %v = affine.load %A[%i - 1] : memref<20xf64>
        affine.store %v, %B[%i] : memref<20xf64>
      } {avial.split = 0 : i64}
      omp.terminator
    }) {name = "S1", avial.owned0 = array<i64: 0, 20>, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// Which ranks take part, and in blocks of how many iterations, is said before the phase.

// CHECK-LABEL: func.func @main(
// CHECK: %[[BLOCK:.*]] = arith.constant 4 : i64
// CHECK: %[[COLUMNS:.*]] = arith.constant 0 : i64
// CHECK: %[[COUNT:.*]] = arith.constant 2 : i64
// CHECK: llvm.call @avial_layout(%[[BLOCK]], %[[COLUMNS]], %[[COUNT]], %{{.*}})
// CHECK: llvm.call @avial_begin(
func.func @some(%A: memref<20xf64> {avial.name = "A"}) {
  %0 = builtin.unrealized_conversion_cast %A : memref<20xf64> to !avial.buffer_ref
  "avial.schedule"(%0) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %2 = "avial.replicate"(%cpu, %0) ({
      %zero = arith.constant 0.0 : f64
      affine.for %i = 0 to 20 {
        affine.store %zero, %A[%i] : memref<20xf64>
      } {avial.split = 0 : i64}
      omp.terminator
    }) {name = "S1", avial.block = 4 : i64, avial.ranks = array<i64: 1, 3>, operandSegmentSizes = array<i32: 1, 0, 1, 0>} : (!avial.target_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref) -> ()
  return
}

// -----

// What is summed up goes to memory of the rank's own, which the runtime combines.

// CHECK-LABEL: func.func private @S1.touches(
// CHECK: call @avial_reduce(
// CHECK-LABEL: func.func @main(
// CHECK: %[[OWN:.*]] = memref.alloc() : memref<f64>
// CHECK: llvm.call @avial_begin(
// CHECK: llvm.call @avial_scratch(
// CHECK: func.call @S1(%{{.*}}, %[[OWN]],
func.func @total(%A: memref<20xf64> {avial.name = "A"}, %s: memref<f64> {avial.name = "s"}) {
  %0 = builtin.unrealized_conversion_cast %A : memref<20xf64> to !avial.buffer_ref
  %1 = builtin.unrealized_conversion_cast %s : memref<f64> to !avial.buffer_ref
  "avial.schedule"(%0, %1) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %2 = "avial.replicate"(%cpu, %0, %1, %1) ({
      affine.for %i = 0 to 20 {
        %v = affine.load %A[%i] : memref<20xf64>
        %o = affine.load %s[] : memref<f64>
        %n = arith.addf %o, %v : f64
        affine.store %n, %s[] : memref<f64>
      } {avial.split = 0 : i64}
      omp.terminator
    }) {name = "S1", avial.reduced = array<i64: 3>, operandSegmentSizes = array<i32: 1, 2, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// A condition that comes from memory: every rank loads it, a plan goes on without.

// CHECK-LABEL: func.func @main(
// CHECK: %[[LIVE:.*]] = arith.cmpi ne
// CHECK: llvm.call @avial_begin(
// CHECK: %[[C:.*]] = scf.if %[[LIVE]] -> (i1) {
// CHECK: llvm.call @avial_range(
// CHECK: memref.load %{{.*}}[]
// CHECK: } else {
// CHECK: llvm.call @avial_end()
// CHECK: llvm.call @avial_unknown()
// CHECK: scf.if %[[C]] {
// CHECK: func.call @S1(
func.func @perhaps(%A: memref<20xf64> {avial.name = "A"}, %f: memref<i1> {avial.name = "f"}) {
  %0 = builtin.unrealized_conversion_cast %A : memref<20xf64> to !avial.buffer_ref
  "avial.schedule"(%0) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %c = memref.load %f[] : memref<i1>
    scf.if %c {
      %2 = "avial.replicate"(%cpu, %0) ({
        %zero = arith.constant 0.0 : f64
        affine.for %i = 0 to 20 {
          affine.store %zero, %A[%i] : memref<20xf64>
        } {avial.split = 0 : i64}
        omp.terminator
      }) {name = "S1", operandSegmentSizes = array<i32: 1, 0, 1, 0>} : (!avial.target_ref, !avial.buffer_ref) -> !avial.task_ref
    }
    omp.terminator
  }) : (!avial.buffer_ref) -> ()
  return
}

// -----

// Where ranks meet after each level, they do so after the last phase of one in a block: a loop ends
// the level before it, and in it they meet in every iteration.

// CHECK: llvm.func @avial_barrier()
// CHECK-LABEL: func.func @main(
// CHECK: llvm.call @avial_end()
// CHECK-NOT: avial_barrier
// CHECK: llvm.call @avial_end()
// CHECK-NEXT: llvm.call @avial_barrier()
// CHECK: scf.for
// CHECK: llvm.call @avial_end()
// CHECK-NEXT: llvm.call @avial_barrier()
// CHECK-NEXT: }
// CHECK-NOT: avial_barrier
// CHECK: return
func.func @levels(%A: memref<20xf64> {avial.name = "A"}, %B: memref<20xf64> {avial.name = "B"}) {
  %0 = builtin.unrealized_conversion_cast %A : memref<20xf64> to !avial.buffer_ref
  %1 = builtin.unrealized_conversion_cast %B : memref<20xf64> to !avial.buffer_ref
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  "avial.schedule"(%0, %1) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %2 = "avial.replicate"(%cpu, %0) ({
      %zero = arith.constant 0.0 : f64
      affine.for %i = 0 to 20 {
        affine.store %zero, %A[%i] : memref<20xf64>
      } {avial.split = 0 : i64}
      omp.terminator
    }) {name = "S1", avial.level = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 1, 0>} : (!avial.target_ref, !avial.buffer_ref) -> !avial.task_ref
    %3 = "avial.replicate"(%cpu, %1) ({
      %one = arith.constant 1.0 : f64
      affine.for %i = 0 to 20 {
        affine.store %one, %B[%i] : memref<20xf64>
      } {avial.split = 0 : i64}
      omp.terminator
    }) {name = "S2", avial.level = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 1, 0>} : (!avial.target_ref, !avial.buffer_ref) -> !avial.task_ref
    scf.for %t = %c0 to %c4 step %c1 {
      %5 = "avial.replicate"(%cpu, %0) ({
        %two = arith.constant 2.0 : f64
        affine.for %i = 0 to 20 {
          affine.store %two, %A[%i] : memref<20xf64>
        } {avial.split = 0 : i64}
        omp.terminator
      }) {name = "S3", avial.level = 1 : i64, operandSegmentSizes = array<i32: 1, 0, 1, 0>} : (!avial.target_ref, !avial.buffer_ref) -> !avial.task_ref
    }
    omp.terminator
  }) {avial.sync = "levels"} : (!avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}
