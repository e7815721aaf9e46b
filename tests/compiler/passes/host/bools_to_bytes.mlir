// RUN: -p bools-to-bytes

// CHECK-LABEL: func.func @load_and_store(
// CHECK-SAME: %[[A:.*]]: memref<8xi8>, %[[I:.*]]: index)
// CHECK: %[[B:.*]] = memref.load %[[A]][%[[I]]] : memref<8xi8>
// CHECK: %[[X:.*]] = arith.trunci %[[B]] : i8 to i1
// CHECK: %[[Y:.*]] = arith.xori %[[X]], %[[X]] : i1
// CHECK: %[[W:.*]] = arith.extui %[[Y]] : i1 to i8
// CHECK: memref.store %[[W]], %[[A]][%[[I]]] : memref<8xi8>
func.func @load_and_store(%a: memref<8xi1>, %i: index) {
  %x = memref.load %a[%i] : memref<8xi1>
  %y = arith.xori %x, %x : i1
  memref.store %y, %a[%i] : memref<8xi1>
  return
}

// -----

// Views, allocations, tables and calls follow.

// CHECK: memref.global "private" constant @table : memref<4xi8> = dense<[1, 0, 1, 0]>
// CHECK-LABEL: func.func @around(
// CHECK-SAME: memref<8xi8>)
// CHECK: memref.subview {{.*}} memref<8xi8> to memref<4xi8
// CHECK: memref.get_global @table : memref<4xi8>
// CHECK: call @around({{.*}}) : (memref<8xi8>)
memref.global "private" constant @table : memref<4xi1> = dense<[true, false, true, false]>
func.func @around(%a: memref<8xi1>) {
  %v = memref.subview %a[2] [4] [1] : memref<8xi1> to memref<4xi1, strided<[1], offset: 2>>
  %t = memref.get_global @table : memref<4xi1>
  func.call @around(%a) : (memref<8xi1>) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @leaves_other_arrays_alone(
// CHECK: memref.load {{.*}} : memref<8xi8>
// CHECK-NOT: arith.trunci
func.func @leaves_other_arrays_alone(%a: memref<8xi8>, %i: index, %c: i1) {
  %x = memref.load %a[%i] : memref<8xi8>
  return
}

// -----

func.func @atomic(%a: memref<8xi1>, %i: index, %x: i1) {
  // REFUSED: memref.atomic_rmw on an array of i1 is not yet lowered
  %y = memref.atomic_rmw ori %x, %a[%i] : (i1, memref<8xi1>) -> i1
  return
}
