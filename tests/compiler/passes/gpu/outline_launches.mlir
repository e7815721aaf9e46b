// RUN: -p outline-launches

// A thread is handed its numbers; an emulated device keeps the launch, with the grid it is handed.

// CHECK-LABEL: func.func private @t_kernel(
// CHECK-SAME: %[[A:.*]]: memref<300xf32>, %[[B:.*]]: memref<300xf32>, %[[BX:.*]]: index, %{{.*}}: index, %{{.*}}: index, %[[TX:.*]]: index, %{{.*}}: index, %{{.*}}: index) attributes {avial.blocks = ["3", "1", "1"], avial.chip = "sm_90", avial.kernel = array<i64: 100, 1, 1>, avial.on_device, avial.shared}
// CHECK: %[[TILE:.*]] = memref.alloca() {avial.workgroup} : memref<100xf32, 3>
// CHECK: %[[WIDTH:.*]] = arith.constant 100 : index
// CHECK: %[[SKIPPED:.*]] = arith.muli %[[BX]], %[[WIDTH]]
// CHECK: %[[I:.*]] = arith.addi %[[SKIPPED]], %[[TX]]
// CHECK: %[[X:.*]] = memref.load %[[A]][%[[I]]]
// CHECK: memref.store %[[X]], %[[TILE]][%[[TX]]]
// CHECK: gpu.barrier
// CHECK: memref.store %{{.*}}, %[[B]][%[[I]]]
// CHECK-NEXT: return

// CHECK: func.func private @t_kernel.grid(
// CHECK-SAME: %{{.*}}: memref<300xf32>, %{{.*}}: memref<300xf32>, %[[GX:.*]]: index, %[[GY:.*]]: index, %[[GZ:.*]]: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index) attributes {avial.shared}
// CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %[[GX]], %{{.*}} = %[[GY]], %{{.*}} = %[[GZ]])

// CHECK: func.func private @t(
// CHECK-SAME: avial.launcher
// CHECK-NOT: gpu.launch
// CHECK: call @t_kernel.grid({{.*}}) {avial.queued = "t_kernel", avial.written}

func.func private @t(%a: memref<300xf32>, %b: memref<300xf32>) attributes {avial.arch = "sm_90"} {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c100 = arith.constant 100 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c3, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c100, %sy = %c1, %sz = %c1)
             workgroup(%tile : memref<100xf32, 3>) {
    %i = gpu.global_id x
    %x = memref.load %a[%i] : memref<300xf32>
    memref.store %x, %tile[%tx] : memref<100xf32, 3>
    gpu.barrier
    %y = memref.load %tile[%tx] : memref<100xf32, 3>
    memref.store %y, %b[%i] : memref<300xf32>
    gpu.terminator
  }
  return
}
func.func @main(%a: memref<300xf32>, %b: memref<300xf32>) {
  call @t(%a, %b) {avial.launch = array<i64: 0, 1>, avial.places = array<i64: 1>, avial.step = 0 : i64} : (memref<300xf32>, memref<300xf32>) -> ()
  return
}

// -----

// The host has none of the device's memory: a task that uses it beside its launches has no kernel.

// CHECK-LABEL: func.func private @beside(
// CHECK-SAME: avial.no_kernel = "beside has no kernel for a GPU: it has memref.store beside its launches
// CHECK: gpu.launch

func.func private @beside(%a: memref<8xf32>) attributes {avial.arch = "gpu"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = arith.constant 1.0 : f32
  memref.store %x, %a[%c0] : memref<8xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    memref.store %x, %a[%tx] : memref<8xf32>
    gpu.terminator
  }
  return
}
func.func @main(%a: memref<8xf32>) {
  call @beside(%a) {avial.launch = array<i64: 0>, avial.places = array<i64: 1>, avial.step = 0 : i64} : (memref<8xf32>) -> ()
  return
}

// -----

// What the launch computes goes with it: the blocks, their threads, and the bytes these share. What
// only a real device does has no code for an emulated one.

// CHECK-LABEL: func.func private @sized_kernel(
// CHECK-SAME: avial.kernel = array<i64: 0, 1, 1>
// CHECK: gpu.dynamic_shared_memory
// CHECK: func.func private @sized_kernel.grid(
// CHECK-SAME: %[[WIDE:[^:]*]]: index, %{{[^:]*}}: index, %{{[^:]*}}: index, %[[SHARED:[^:]*]]: index) attributes {avial.shared}
// CHECK: %[[BYTES:.*]] = arith.index_cast %[[SHARED]] : index to i32
// CHECK: gpu.launch {{.*}} threads({{.*}}) in (%{{.*}} = %[[WIDE]], {{.*}}) dynamic_shared_memory_size %[[BYTES]]
// CHECK: func.func private @sized(
// CHECK: call @sized_kernel.grid({{.*}}) {avial.queued = "sized_kernel", avial.written}
// CHECK: func.func private @timed_kernel.grid(
// CHECK-SAME: avial.not_emulated = "nvvm.read.ptx.sreg.clock
// CHECK-NOT: gpu.launch
// CHECK: func.func private @timed(

func.func private @sized(%a: memref<300xi8>, %n: index, %nbytes: i32) attributes {avial.arch = "sm_90"} {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1)
             dynamic_shared_memory_size %nbytes {
    %m = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %x = memref.load %a[%tx] : memref<300xi8>
    memref.store %x, %m[%tx] : memref<?xi8, #gpu.address_space<workgroup>>
    gpu.terminator
  }
  return
}
func.func private @timed(%a: memref<300xi32>) attributes {avial.arch = "sm_90"} {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %x = nvvm.read.ptx.sreg.clock : i32
    memref.store %x, %a[%tx] : memref<300xi32>
    gpu.terminator
  }
  return
}
func.func @main(%a: memref<300xi8>, %b: memref<300xi32>, %n: index, %nbytes: i32) {
  call @sized(%a, %n, %nbytes) {avial.launch = array<i64: 0, -1, -1>, avial.places = array<i64: 1>, avial.step = 0 : i64} : (memref<300xi8>, index, i32) -> ()
  call @timed(%b) {avial.launch = array<i64: 1>, avial.places = array<i64: 1>, avial.step = 1 : i64} : (memref<300xi32>) -> ()
  return
}
