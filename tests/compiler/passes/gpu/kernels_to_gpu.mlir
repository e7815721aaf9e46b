// RUN: -p kernels-to-gpu{chip=sm_90}

// A kernel takes pointers and numbers; of what it only reads the device is told.

// CHECK: module attributes {gpu.container_module} {
// CHECK-NOT: func.func
// CHECK: gpu.module @S1_kernel [#nvvm.target<O = 3, chip = "sm_90">] {
// CHECK: gpu.func @S1_kernel(%[[A:.*]]: !llvm.ptr {llvm.noalias, llvm.readonly}, %[[B:.*]]: !llvm.ptr {llvm.noalias}, %[[ROWS:.*]]: i64, %[[X:.*]]: f32) kernel attributes {avial.blocks = ["ceil(j / 64)", "ceil(i / 4)", "1"], known_block_size = array<i32: 64, 4, 1>} {
// CHECK: %[[ARRAY:.*]] = builtin.unrealized_conversion_cast %{{.*}} to memref<4x5xf32>
// CHECK: llvm.insertvalue %[[ROWS]], %{{.*}}[3, 0]
// CHECK: gpu.block_id x
// CHECK: %[[TX:.*]] = gpu.thread_id x
// CHECK: memref.load %[[ARRAY]][%[[TX]], %[[TX]]]
// CHECK: gpu.return
module attributes {avial.contracted} {
  func.func private @S1_kernel(%A: memref<4x5xf32>, %B: memref<?x5xf32>, %x: f32, %bx: index, %by: index, %bz: index, %tx: index, %ty: index, %tz: index) attributes {avial.blocks = ["ceil(j / 64)", "ceil(i / 4)", "1"], avial.kernel = array<i64: 64, 4, 1>, avial.no_alias} {
    %a = memref.load %A[%tx, %tx] : memref<4x5xf32>
    %b = arith.addf %a, %x : f32
    memref.store %b, %B[%tx, %bx] : memref<?x5xf32>
    return
  }
  func.func @main() {
    return
  }
}
