// RUN: -p copies-to-loops

// CHECK-LABEL: func.func @two_dimensions(
// CHECK-SAME: %[[A:.*]]: memref<4x8xf32>, %[[B:.*]]: memref<4x8xf32, strided<[16, 1]>>)
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step
// CHECK: scf.for %[[J:.*]] = %{{.*}} to %{{.*}} step
// CHECK: %[[X:.*]] = memref.load %[[A]][%[[I]], %[[J]]]
// CHECK: memref.store %[[X]], %[[B]][%[[I]], %[[J]]]
// CHECK-NOT: memref.copy %
func.func @two_dimensions(%a: memref<4x8xf32>, %b: memref<4x8xf32, strided<[16, 1]>>) {
  memref.copy %a, %b : memref<4x8xf32> to memref<4x8xf32, strided<[16, 1]>>
  return
}

// -----

// CHECK-LABEL: func.func @no_dimensions(
// CHECK-NOT: scf.for
// CHECK: %[[X:.*]] = memref.load
// CHECK: memref.store %[[X]]
func.func @no_dimensions(%a: memref<f32>, %b: memref<f32>) {
  memref.copy %a, %b : memref<f32> to memref<f32>
  return
}

// -----

// CHECK-LABEL: func.func @known_on_one_side(
// CHECK-NOT: memref.dim
// CHECK: arith.constant 7 : index
func.func @known_on_one_side(%a: memref<?xf32>, %b: memref<7xf32>) {
  memref.copy %a, %b : memref<?xf32> to memref<7xf32>
  return
}

// -----

// CHECK-LABEL: func.func @unknown(
// CHECK: memref.dim
func.func @unknown(%a: memref<?xf32>, %b: memref<?xf32>) {
  memref.copy %a, %b : memref<?xf32> to memref<?xf32>
  return
}
