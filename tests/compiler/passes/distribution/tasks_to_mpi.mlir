// RUN: -p tasks-to-mpi

// Two ranks: each has a block of its own; a whole array is sent from where it lies,
// and a message whose wait comes at once is one call.

// CHECK-LABEL: func.func private @task1(
// CHECK-SAME: %[[A:.*]]: memref<20xi32>, %[[C:.*]]: memref<20xi32>) attributes {avial.arch = "cpu", avial.as_written, avial.task = "task1"}
// CHECK: memref.copy %[[A]], %[[C]]
// CHECK: return
// CHECK-LABEL: func.func private @task2(
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:.*]]: memref<20xi32>, %[[C:.*]]: memref<20xi32>, %[[D:.*]]: memref<20xi32>)
// CHECK-SAME: llvm.emit_c_interface
// CHECK: %[[COMM:.*]] = mpi.comm_world
// CHECK: %{{.*}}, %[[RANK:.*]] = mpi.comm_rank(%[[COMM]])
// CHECK: %[[ON0:.*]] = arith.cmpi eq, %[[RANK]]
// CHECK: scf.if %[[ON0]] {
// CHECK-NEXT: call @task1(%[[A]], %[[C]]) {avial.step = 0 : i64}
// CHECK: %[[TAG:.*]] = arith.constant 0 : i32
// CHECK: %[[DEST:.*]] = arith.constant 1 : i32
// CHECK: mpi.send(%[[C]], %[[TAG]], %[[DEST]], %[[COMM]]) {avial.step = 1 : i64}
// CHECK-NEXT: }
// CHECK: scf.if
// CHECK: mpi.recv(%[[C]], {{.*}}) {avial.step = 0 : i64}
// CHECK-NEXT: call @task2(%[[D]], %[[C]]) {avial.step = 2 : i64}
// CHECK-NEXT: }
// CHECK-NOT: "avial.task"(
func.func @two_ranks(%a: memref<20xi32> {avial.name = "a"}, %c: memref<20xi32> {avial.name = "c"}, %d: memref<20xi32> {avial.name = "d"}) attributes {
    avial.ranks = 2 : i32,
    avial.storages = [
      {name = "a", shape = array<i64: 20>, itemsize = 4 : i64, buffers = ["a"]},
      {name = "c", shape = array<i64: 20>, itemsize = 4 : i64, buffers = ["c"]},
      {name = "d", shape = array<i64: 20>, itemsize = 4 : i64, buffers = ["d"]}],
    avial.transfers = [{storage = "c", start = array<i64: 0>, stop = array<i64: 20>, source = 0 : i32, dest = 1 : i32, producer = "task1", consumer = "task2"}],
    avial.programs = [["run task1", "send 0", "sent 0"], ["post 0", "received 0", "run task2"]]} {
  "avial.schedule"() ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %0 = "avial.task"(%cpu) ({
      memref.copy %a, %c : memref<20xi32> to memref<20xi32>
      omp.terminator
    }) {name = "task1", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!avial.target_ref) -> !avial.task_ref
    %1 = "avial.task"(%cpu) ({
      memref.copy %d, %c : memref<20xi32> to memref<20xi32>
      memref.copy %c, %d : memref<20xi32> to memref<20xi32>
      omp.terminator
    }) {name = "task2", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!avial.target_ref) -> !avial.task_ref
    omp.terminator
  }) : () -> ()
  return
}

// -----

// One rank needs no MPI and no guard. Equal bodies share a function, whatever their buffers and places.

// CHECK-LABEL: func.func private @fill_a(
// CHECK-NOT: func.func private
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:.*]]: memref<4xf32>, %[[B:.*]]: memref<4xf32>)
// CHECK-NOT: mpi.
// CHECK-NOT: scf.if
// CHECK: call @fill_a(%[[A]]) {avial.step = 0 : i64}
// CHECK-NEXT: call @fill_a(%[[B]]) {avial.step = 1 : i64}
// CHECK-NEXT: return
func.func @one_rank(%a: memref<4xf32> {avial.name = "a"}, %b: memref<4xf32> {avial.name = "b"}) attributes {
    avial.ranks = 1 : i32,
    avial.storages = [
      {name = "a", shape = array<i64: 4>, itemsize = 4 : i64, buffers = ["a"]},
      {name = "b", shape = array<i64: 4>, itemsize = 4 : i64, buffers = ["b"]}],
    avial.transfers = [],
    avial.programs = [["run fill_a", "run fill_b"]]} {
  %one = arith.constant 1.0 : f32
  "avial.schedule"() ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %0 = "avial.task"(%cpu) ({
      linalg.fill ins(%one : f32) outs(%a : memref<4xf32>)
      omp.terminator
    }) {name = "fill_a", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!avial.target_ref) -> !avial.task_ref
    %1 = "avial.task"(%cpu) ({
      linalg.fill ins(%one : f32) outs(%b : memref<4xf32>)
      omp.terminator
    }) {name = "fill_b", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!avial.target_ref) -> !avial.task_ref
    omp.terminator
  }) : () -> ()
  return
}

// -----

// Rows are one stretch of memory and go as they lie; columns go through a staging buffer, freed after the wait.

// CHECK-LABEL: func.func private @pack_a(
// CHECK-SAME: %[[WHOLE:.*]]: memref<4x6xf64>, %[[STAGING:.*]]: memref<8xf64>)
// CHECK: %[[X:.*]] = memref.load %[[WHOLE]]
// CHECK: memref.store %[[X]], %[[STAGING]]
// CHECK-LABEL: func.func private @unpack_a(
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:.*]]: memref<4x6xf64>)
// CHECK: %[[ROWS:.*]] = memref.reinterpret_cast %[[A]] to offset: [6], sizes: [12], strides: [1]
// CHECK: mpi.isend(%[[ROWS]], {{.*}}) {avial.step = 1 : i64}
// CHECK: %[[BUFFER:.*]] = memref.alloc() {avial.step = 2 : i64} : memref<8xf64>
// CHECK: call @pack_a(%[[A]], %[[BUFFER]]) {avial.copy = "pack", avial.step = 2 : i64}
// CHECK: mpi.isend(%[[BUFFER]], {{.*}}) {avial.step = 2 : i64}
// CHECK: mpi.wait({{.*}}) {avial.step = 3 : i64}
// CHECK: mpi.wait({{.*}}) {avial.step = 4 : i64}
// CHECK: memref.dealloc %[[BUFFER]] {avial.step = 4 : i64}
// CHECK: scf.if
// CHECK: mpi.irecv({{.*}}) {avial.step = 0 : i64}
// CHECK: %[[BUFFER2:.*]] = memref.alloc() {avial.step = 1 : i64} : memref<8xf64>
// CHECK: mpi.irecv(%[[BUFFER2]], {{.*}}) {avial.step = 1 : i64}
// CHECK: mpi.wait({{.*}}) {avial.step = 3 : i64}
// CHECK-NEXT: call @unpack_a(%[[A]], %[[BUFFER2]]) {avial.copy = "unpack", avial.step = 3 : i64}
// CHECK-NEXT: memref.dealloc %[[BUFFER2]] {avial.step = 3 : i64}
func.func @boxes(%a: memref<4x6xf64> {avial.name = "a"}) attributes {
    avial.ranks = 2 : i32,
    avial.storages = [{name = "a", shape = array<i64: 4, 6>, itemsize = 8 : i64, buffers = ["a"]}],
    avial.transfers = [
      {storage = "a", start = array<i64: 1, 0>, stop = array<i64: 3, 6>, source = 0 : i32, dest = 1 : i32, producer = "t", consumer = "u"},
      {storage = "a", start = array<i64: 0, 2>, stop = array<i64: 4, 4>, source = 0 : i32, dest = 1 : i32, producer = "t", consumer = "u"}],
    avial.programs = [["run t", "send 0", "send 1", "sent 0", "sent 1"], ["post 0", "post 1", "received 0", "received 1", "run u"]]} {
  "avial.schedule"() ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %0 = "avial.task"(%cpu) ({
      omp.terminator
    }) {name = "t", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!avial.target_ref) -> !avial.task_ref
    %1 = "avial.task"(%cpu) ({
      omp.terminator
    }) {name = "u", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!avial.target_ref) -> !avial.task_ref
    omp.terminator
  }) : () -> ()
  return
}

// -----

// Arrays that share memory are views into one storage of bytes. A barrier is one on every rank.

// CHECK-LABEL: func.func private @t(
// CHECK-SAME: memref<8xi32>, %{{.*}}: memref<4xi32, strided<[2]>>)
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[BYTES:.*]]: memref<40xi8>)
// CHECK: %[[AT:.*]] = arith.constant 8 : index
// CHECK: %[[VIEW:.*]] = memref.view %[[BYTES]][%[[AT]]][] : memref<40xi8> to memref<1xi32>
// CHECK: %[[Y:.*]] = memref.reinterpret_cast %[[VIEW]] to offset: [0], sizes: [4], strides: [2]
// CHECK: call @t(%{{.*}}, %[[Y]])
// CHECK-NEXT: mpi.barrier({{.*}}) {avial.step = 1 : i64}
// CHECK: mpi.barrier({{.*}}) {avial.step = 0 : i64}
func.func @shared(%x: memref<8xi32> {avial.name = "x", avial.storage = "x", avial.offset = 0 : i64}, %y: memref<4xi32, strided<[2]>> {avial.name = "y", avial.storage = "x", avial.offset = 8 : i64}) attributes {
    avial.ranks = 2 : i32,
    avial.storages = [{name = "x", shape = array<i64: 40>, itemsize = 1 : i64, buffers = ["x", "y"]}],
    avial.transfers = [],
    avial.programs = [["run t", "barrier"], ["barrier"]]} {
  "avial.schedule"() ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %0 = "avial.task"(%cpu) ({
      %s = memref.subview %x[0] [4] [1] : memref<8xi32> to memref<4xi32>
      memref.copy %s, %y : memref<4xi32> to memref<4xi32, strided<[2]>>
      omp.terminator
    }) {name = "t", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!avial.target_ref) -> !avial.task_ref
    omp.terminator
  }) : () -> ()
  return
}

// -----


// REFUSED: the program has no avial.programs; run place-tasks before tasks-to-mpi
func.func @not_placed() {
  "avial.schedule"() ({
    omp.terminator
  }) : () -> ()
  return
}

// -----


func.func @effect_between_tasks(%a: memref<4xf32> {avial.name = "a"}) attributes {avial.ranks = 1 : i32, avial.storages = [], avial.transfers = [], avial.programs = [[]]} {
  %c0 = arith.constant 0 : index
  "avial.schedule"() ({
    // no task may see what this reads
    // REFUSED: memref.load between tasks is not yet lowered
    %x = memref.load %a[%c0] : memref<4xf32>
    omp.terminator
  }) : () -> ()
  return
}

// -----

func.func @replicate() attributes {avial.ranks = 1 : i32, avial.storages = [], avial.transfers = [], avial.programs = [[]]} {
  "avial.schedule"() ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    // REFUSED: avial.replicate between tasks is not yet lowered
    %0 = "avial.replicate"(%cpu) ({
      omp.terminator
    }) {name = "r", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!avial.target_ref) -> !avial.task_ref
    omp.terminator
  }) : () -> ()
  return
}

// -----

// REFUSED: function @no_such_function has no body, and the C library has none of that name
func.func private @no_such_function(f64) -> f64
func.func @declared_only() attributes {avial.ranks = 1 : i32, avial.storages = [], avial.transfers = [], avial.programs = [[]]} {
  "avial.schedule"() ({
    omp.terminator
  }) : () -> ()
  return
}

// -----

// REFUSED: a function other than the program cannot be named @main
func.func private @main() {
  return
}
func.func @another_main() attributes {avial.ranks = 1 : i32, avial.storages = [], avial.transfers = [], avial.programs = [[]]} {
  "avial.schedule"() ({
    omp.terminator
  }) : () -> ()
  return
}

// -----

// CHECK: func.func private @cos(f64) -> f64
func.func private @cos(f64) -> f64
func.func @of_the_c_library() attributes {avial.ranks = 1 : i32, avial.storages = [], avial.transfers = [], avial.programs = [[]]} {
  "avial.schedule"() ({
    omp.terminator
  }) : () -> ()
  return
}
