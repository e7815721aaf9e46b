// RUN: -p emulate-gpu

// Loops over blocks and threads; every index operation is a loop's variable or an extent.

// CHECK-LABEL: func.func @simple(
// CHECK-SAME: %[[C:.*]]: memref<20xindex>, %[[N:.*]]: index)
// CHECK: %[[ONE:.*]] = arith.constant 1 : index
// CHECK: scf.for
// CHECK-NEXT: scf.for
// CHECK-NEXT: scf.for %[[BX:.*]] = %{{.*}} to %[[N]]
// CHECK: scf.for
// CHECK-NEXT: scf.for
// CHECK-NEXT: scf.for %[[TX:.*]] = %{{.*}} to %{{.*}} step
// CHECK: arith.muli %[[BX]]
// CHECK: memref.store %{{.*}}, %[[C]][%[[TX]]]
// CHECK-NOT: gpu.
func.func @simple(%c: memref<20xindex>, %n: index) {
  %one = arith.constant 1 : index
  %five = arith.constant 5 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %five, %sy = %one, %sz = %one) {
    %id = gpu.global_id x
    %t = gpu.thread_id x
    memref.store %id, %c[%t] : memref<20xindex>
    gpu.terminator
  }
  return
}

// -----

// A barrier ends one loop over the threads and starts the next; what was loaded before it is kept for each thread,
// what is computed from ids alone is computed again. Workgroup memory is ordinary memory, freed at the end.

// CHECK-LABEL: func.func @barrier(
// CHECK: %[[W:.*]] = memref.alloc() : memref<4xi32>
// CHECK: %[[KEPT:.*]] = memref.alloc(%{{.*}}) : memref<?xi32>
// CHECK: %[[X:.*]] = memref.load %{{.*}} : memref<20xi32>
// CHECK: memref.store %[[X]], %[[KEPT]]
// CHECK: memref.store %[[X]], %[[W]]
// CHECK: }
// CHECK: scf.for
// CHECK-DAG: %[[AGAIN:.*]] = memref.load %[[KEPT]]
// CHECK-DAG: %[[Y:.*]] = memref.load %[[W]]
// CHECK: arith.addi %[[AGAIN]], %[[Y]]
// CHECK: memref.dealloc %[[W]]
// CHECK: memref.dealloc %[[KEPT]]
func.func @barrier(%a: memref<20xi32>, %n: index) {
  %one = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %one, %sz = %one)
             workgroup(%w : memref<4xi32, #gpu.address_space<workgroup>>) {
    %x = memref.load %a[%tx] : memref<20xi32>
    %next = arith.addi %tx, %one : index
    memref.store %x, %w[%tx] : memref<4xi32, #gpu.address_space<workgroup>>
    gpu.barrier
    %y = memref.load %w[%next] : memref<4xi32, #gpu.address_space<workgroup>>
    %z = arith.addi %x, %y : i32
    memref.store %z, %a[%tx] : memref<20xi32>
    gpu.terminator
  }
  return
}

// -----

// A uniform loop around a barrier is drawn out of the loops over the threads.

// CHECK-LABEL: func.func @barrier_in_a_loop(
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[N:.*]] step %[[STEP:.*]] {
// CHECK: scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step
func.func @barrier_in_a_loop(%a: memref<20xi32>, %n: index) {
  %one = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %one, %sz = %one) {
    scf.for %k = %bx to %n step %one {
      %x = memref.load %a[%k] : memref<20xi32>
      gpu.barrier
      memref.store %x, %a[%tx] : memref<20xi32>
    }
    gpu.terminator
  }
  return
}

// -----

// Memory of the GPU is memory.

// CHECK-LABEL: func.func @memory(
// CHECK: %[[M:.*]] = memref.alloc() : memref<4xf32>
// CHECK: memref.copy %{{.*}}, %[[M]]
// CHECK: memref.dealloc %[[M]]
func.func @memory(%a: memref<4xf32>) {
  %m = gpu.alloc () : memref<4xf32, 1>
  gpu.memcpy %m, %a : memref<4xf32, 1>, memref<4xf32>
  gpu.dealloc %m : memref<4xf32, 1>
  return
}

// -----

// What is no GPU's business stays.

// CHECK-LABEL: func.func @leaves_loops_alone(
// CHECK-NEXT: scf.parallel
func.func @leaves_loops_alone(%n: index) {
  scf.parallel (%i) = (%n) to (%n) step (%n) {
  }
  return
}

// -----

func.func @lane_id(%c: memref<32xindex>) {
  %one = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %one, %sy = %one, %sz = %one) {
    // REFUSED: gpu.lane_id is not yet lowered for the emulated GPU
    %l = gpu.lane_id
    memref.store %l, %c[%tx] : memref<32xindex>
    gpu.terminator
  }
  return
}

// -----

func.func @barrier_for_some_threads(%c: memref<32xindex>) {
  %one = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %one, %sy = %one, %sz = %one) {
    %some = arith.cmpi eq, %tx, %one : index
    // REFUSED: gpu.barrier inside scf.if whose bounds or condition may differ between threads
    scf.if %some {
      gpu.barrier
    }
    gpu.terminator
  }
  return
}

// -----

// A loop that only reads waits for what no other thread, block or launch does meanwhile: what it begins never ends.

// CHECK-LABEL: func.func @waits(
// CHECK: scf.while
// CHECK: do {
// CHECK: cf.assert %false{{.*}}, "scf.while: it waits for memory that nobody writes meanwhile
// CHECK: scf.while
// CHECK: do {
// CHECK-NOT: cf.assert
// CHECK: return
func.func @waits(%a: memref<4xi32>, %n: index) {
  %one = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %one, %sy = %one, %sz = %one) {
    %none = arith.constant 0 : i32
    %two = arith.constant 2 : i32
    scf.while : () -> () {
      %x = memref.atomic_rmw addi %none, %a[%tx] : (i32, memref<4xi32>) -> i32
      %less = arith.cmpi slt, %x, %two : i32
      scf.condition(%less)
    } do {
      scf.yield
    }
    scf.while : () -> () {
      %x = memref.atomic_rmw addi %two, %a[%tx] : (i32, memref<4xi32>) -> i32
      %less = arith.cmpi slt, %x, %two : i32
      scf.condition(%less)
    } do {
      scf.yield
    }
    gpu.terminator
  }
  return
}
