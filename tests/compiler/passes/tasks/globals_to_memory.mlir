// RUN: -p globals-to-memory

// A table that a kernel reads, and one that the host hands to it, are memory with their values.

// CHECK-LABEL: func.func @tables(
// CHECK-SAME: %[[A:.*]]: memref<4xf64>) {
// CHECK: %[[OWN:.*]] = memref.alloc() : memref<4xf64>
// CHECK: %[[W:.*]] = memref.alloc() : memref<4xf64>
// CHECK: %[[FIRST:.*]] = memref.get_global @w : memref<4xf64>
// CHECK: memref.copy %[[FIRST]], %[[W]]
// CHECK-NOT: memref.get_global @own
// CHECK: gpu.launch
// CHECK-NOT: memref.get_global
// CHECK: %[[X:.*]] = memref.load %[[W]][
// CHECK: memref.store %{{.*}}, %[[OWN]][
// CHECK: gpu.terminator
// CHECK: memref.load %[[OWN]][
// CHECK: memref.get_global @read
memref.global "private" @w : memref<4xf64> = dense<[1.0, 2.0, 3.0, 4.0]>
memref.global "private" @own : memref<4xf64> = uninitialized
memref.global "private" @read : memref<4xf64> = dense<[0.5, 1.5, 2.5, 3.5]>
func.func @tables(%A: memref<4xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %own = memref.get_global @own : memref<4xf64>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
    %w = memref.get_global @w : memref<4xf64>
    %x = memref.load %w[%tx] : memref<4xf64>
    %y = arith.addf %x, %x : f64
    memref.store %y, %own[%tx] : memref<4xf64>
    gpu.terminator
  }
  scf.for %i = %c0 to %c4 step %c1 {
    %o = memref.load %own[%i] : memref<4xf64>
    %r = memref.get_global @read : memref<4xf64>
    %s = memref.load %r[%i] : memref<4xf64>
    %t = arith.addf %o, %s : f64
    memref.store %t, %A[%i] : memref<4xf64>
  }
  return
}
