// RUN: -p check-bounds

// CHECK: module attributes {avial.sites = [
// CHECK-SAME: text = "memref.load
// CHECK-LABEL: func.func @load(
// CHECK-SAME: %[[A:.*]]: memref<20xi32>, %[[I:.*]]: index)
// CHECK: %[[N:.*]] = arith.constant 20 : index
// CHECK: %[[IN:.*]] = arith.cmpi ult, %[[I]], %[[N]]
// CHECK: scf.if %[[IN]] -> (i32) {
// CHECK-NEXT: memref.load %[[A]][%[[I]]]
// CHECK-NEXT: scf.yield
// CHECK: llvm.call @avial.outside(
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK: scf.yield %[[ZERO]]
func.func @load(%a: memref<20xi32>, %i: index) -> i32 {
  %x = memref.load %a[%i] : memref<20xi32>
  return %x : i32
}

// -----

// Known at compile time to be inside: no check.

// CHECK-LABEL: func.func @constant_index(
// CHECK-NOT: scf.if
func.func @constant_index(%a: memref<20xi32>) -> i32 {
  %i = arith.constant 19 : index
  %x = memref.load %a[%i] : memref<20xi32>
  return %x : i32
}

// -----

// One past the end.

// CHECK-LABEL: func.func @constant_outside(
// CHECK: scf.if
func.func @constant_outside(%a: memref<20xi32>) -> i32 {
  %i = arith.constant 20 : index
  %x = memref.load %a[%i] : memref<20xi32>
  return %x : i32
}

// -----

// CHECK-LABEL: func.func @unknown_extent(
// CHECK: memref.dim
// CHECK: arith.cmpi ult
func.func @unknown_extent(%a: memref<?xi32>, %i: index, %x: i32) {
  memref.store %x, %a[%i] : memref<?xi32>
  return
}

// -----

// A vector has to fit whole.

// CHECK-LABEL: func.func @vector(
// CHECK: arith.constant 3 : index
// CHECK: scf.if {{.*}} -> (vector<4xi32>)
func.func @vector(%a: memref<20xi32>, %i: index) -> vector<4xi32> {
  %x = vector.load %a[%i] : memref<20xi32>, vector<4xi32>
  return %x : vector<4xi32>
}

// -----

// A view outside its array starts at 0.

// CHECK-LABEL: func.func @subview(
// CHECK: llvm.call @avial.outside(
// CHECK: %[[AT:.*]] = arith.select
// CHECK: memref.subview %{{.*}}[%[[AT]]] [4] [1]
func.func @subview(%a: memref<20xi32>, %i: index) {
  %v = memref.subview %a[%i] [4] [1] : memref<20xi32> to memref<4xi32, strided<[1], offset: ?>>
  return
}

// -----

// Bytes of another array's: 4 for each element.

// CHECK-LABEL: func.func @view(
// CHECK-SAME: %[[A:.*]]: memref<?xi8>
// CHECK: %[[ROOM:.*]] = memref.dim %[[A]]
// CHECK: arith.cmpi ult, %{{.*}}, %{{.*}}
// CHECK: llvm.call @avial.outside(
// CHECK: %[[AT:.*]] = arith.select
// CHECK: %[[ROWS:.*]] = arith.select
// CHECK: memref.view %[[A]][%[[AT]]][%[[ROWS]]] : memref<?xi8> to memref<?x3xf32>
func.func @view(%a: memref<?xi8>, %at: index, %rows: index) {
  %v = memref.view %a[%at][%rows] : memref<?xi8> to memref<?x3xf32>
  return
}

// -----

// The entry is ours, and not checked.

// CHECK-LABEL: func.func @main(
// CHECK-NOT: scf.if
func.func @main(%a: memref<20xi32>, %i: index) attributes {avial.ranks = 1 : i32} {
  %x = memref.load %a[%i] : memref<20xi32>
  return
}
