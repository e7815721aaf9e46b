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
// CHECK-SAME: %{{.*}}: memref<300xf32>, %{{.*}}: memref<300xf32>, %[[GX:.*]]: index, %[[GY:.*]]: index, %[[GZ:.*]]: index) attributes {avial.shared}
// CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %[[GX]], %{{.*}} = %[[GY]], %{{.*}} = %[[GZ]])

// CHECK: func.func private @t(
// CHECK-SAME: avial.launcher
// CHECK-NOT: gpu.launch
// CHECK: call @t_kernel.grid({{.*}}) {avial.queued = "t_kernel"}

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
