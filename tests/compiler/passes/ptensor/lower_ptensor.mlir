// RUN: -p lower-ptensor

// A chain of operations is one nest with the reduction that takes it, straight into the result's array.

// CHECK-LABEL: func.func @fused(
// CHECK-NOT: memref.alloc
// CHECK: affine.store %{{.*}}, %[[S:[a-z0-9]+]][] : memref<f64>
// CHECK: affine.for %[[I:.*]] = 0 to 8 {
// CHECK-NEXT: %[[L:.*]] = affine.load %{{.*}}[%[[I]]] : memref<9xf64>
// CHECK-NEXT: %[[R:.*]] = affine.load %{{.*}}[%[[I]] + 1] : memref<9xf64>
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[L]], %[[R]] : f64
// CHECK-NEXT: %[[T:.*]] = affine.load %[[S]][] : memref<f64>
// CHECK-NEXT: %[[U:.*]] = arith.addf %[[T]], %[[P]] : f64
// CHECK-NEXT: affine.store %[[U]], %[[S]][] : memref<f64>
// CHECK-NOT: ptensor
func.func @fused(%A: memref<9xf64>, %s: memref<f64>) {
  %x = "ptensor.load"(%A) : (memref<9xf64>) -> !ptensor.ptensor<tensor<9xf64>, "default", unit>
  %l = "ptensor.view"(%x) {map = affine_map<(d0) -> (d0)>} : (!ptensor.ptensor<tensor<9xf64>, "default", unit>) -> !ptensor.ptensor<tensor<8xf64>, "default", unit>
  %r = "ptensor.view"(%x) {map = affine_map<(d0) -> (d0 + 1)>} : (!ptensor.ptensor<tensor<9xf64>, "default", unit>) -> !ptensor.ptensor<tensor<8xf64>, "default", unit>
  %p = "ptensor.binary"(%l, %r) {op = "multiply"} : (!ptensor.ptensor<tensor<8xf64>, "default", unit>, !ptensor.ptensor<tensor<8xf64>, "default", unit>) -> !ptensor.ptensor<tensor<8xf64>, "default", unit>
  %t = "ptensor.reduce"(%p) {op = "sum", axes = array<i64: 0>} : (!ptensor.ptensor<tensor<8xf64>, "default", unit>) -> !ptensor.ptensor<tensor<f64>, "default", unit>
  "ptensor.store"(%t, %s) : (!ptensor.ptensor<tensor<f64>, "default", unit>, memref<f64>) -> ()
  return
}

// -----

// An assignment that reads other elements of the array than it writes goes through memory of its own; one that reads
// the same does not.

// CHECK-LABEL: func.func @assigned(
// CHECK: %[[M:.*]] = memref.alloc() : memref<8xf64>
// CHECK: affine.store %{{.*}}, %[[M]]
// CHECK: affine.load %[[M]]
// CHECK-NEXT: affine.store %{{.*}}, %[[A:.*]][%{{.*}} + 1]
// CHECK: affine.for
// CHECK-NEXT: %[[X:.*]] = affine.load %[[A]][%[[I:.*]]]
// CHECK-NEXT: %[[Y:.*]] = arith.addf %[[X]], %[[X]]
// CHECK-NEXT: affine.store %[[Y]], %[[A]][%[[I]]]
// CHECK: memref.dealloc %[[M]]
func.func @assigned(%A: memref<9xf64>) {
  %x = "ptensor.load"(%A) : (memref<9xf64>) -> !ptensor.ptensor<tensor<9xf64>, "default", unit>
  %l = "ptensor.view"(%x) {map = affine_map<(d0) -> (d0)>} : (!ptensor.ptensor<tensor<9xf64>, "default", unit>) -> !ptensor.ptensor<tensor<8xf64>, "default", unit>
  "ptensor.insert"(%l, %A) {map = affine_map<(d0) -> (d0 + 1)>} : (!ptensor.ptensor<tensor<8xf64>, "default", unit>, memref<9xf64>) -> ()
  %y = "ptensor.load"(%A) : (memref<9xf64>) -> !ptensor.ptensor<tensor<9xf64>, "default", unit>
  %z = "ptensor.binary"(%y, %y) {op = "add"} : (!ptensor.ptensor<tensor<9xf64>, "default", unit>, !ptensor.ptensor<tensor<9xf64>, "default", unit>) -> !ptensor.ptensor<tensor<9xf64>, "default", unit>
  "ptensor.insert"(%z, %A) {map = affine_map<(d0) -> (d0)>} : (!ptensor.ptensor<tensor<9xf64>, "default", unit>, memref<9xf64>) -> ()
  return
}
