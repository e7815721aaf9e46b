// RUN: -p launch-on-devices

// The arguments are copied when the launch is queued: an array as where it lies on the device.

// CHECK: llvm.func @avial_there(i64, !llvm.ptr) -> !llvm.ptr
// CHECK: llvm.func @avial_launch(!llvm.ptr, !llvm.ptr, i64)
// CHECK: func.func private @S1.launch(%[[DATA:.*]]: !llvm.ptr) attributes {avial.shared} {
// CHECK-NEXT: %[[AT0:.*]] = llvm.getelementptr %[[DATA]][0]
// CHECK-NEXT: %[[D:.*]] = llvm.load %[[AT0]] : !llvm.ptr -> !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
// CHECK-NEXT: %[[A:.*]] = builtin.unrealized_conversion_cast %[[D]]
// CHECK-NEXT: %[[AT1:.*]] = llvm.getelementptr %[[DATA]][40]
// CHECK-NEXT: %[[F:.*]] = llvm.load %[[AT1]] : !llvm.ptr -> f64
// CHECK-NEXT: %[[AT2:.*]] = llvm.getelementptr %[[DATA]][56]
// CHECK-NEXT: %[[L:.*]] = llvm.load %[[AT2]] : !llvm.ptr -> i64
// CHECK-NEXT: %[[LOW:.*]] = arith.index_cast %[[L]] : i64 to index
// CHECK-NEXT: call @S1(%[[A]], %[[F]], %[[LOW]])
// CHECK-NEXT: return
// CHECK: func.func @main(%[[HOST:.*]]: memref<?xf64>, %[[X:.*]]: f64, %[[I:.*]]: index) {
// CHECK: %[[ROOM:.*]] = llvm.alloca
// CHECK: %[[C:.*]] = builtin.unrealized_conversion_cast %[[HOST]]
// CHECK-NEXT: %[[HERE:.*]] = llvm.extractvalue %[[C]][1]
// CHECK-NEXT: %[[THIRD:.*]] = llvm.mlir.constant(3 : i64) : i64
// CHECK-NEXT: %[[THERE:.*]] = llvm.call @avial_there(%[[THIRD]], %[[HERE]])
// CHECK-NEXT: %[[E:.*]] = llvm.insertvalue %[[THERE]], %[[C]][0]
// CHECK-NEXT: %[[G:.*]] = llvm.insertvalue %[[THERE]], %[[E]][1]
// CHECK: llvm.store %[[G]],
// CHECK: llvm.store %[[X]],
// CHECK: llvm.call @avial_launch(%{{.*}}, %[[ROOM]], %{{.*}})
// CHECK-NOT: avial.launch =
func.func private @S1(%A: memref<?xf64>, %x: f64, %low: index) {
  memref.store %x, %A[%low] : memref<?xf64>
  return
}
func.func @main(%A: memref<?xf64>, %x: f64, %i: index) {
  call @S1(%A, %x, %i) {avial.launch = array<i64: 3, -1, -1>} : (memref<?xf64>, f64, index) -> ()
  return
}

// -----

// What is called stays a call.

// CHECK-LABEL: func.func @calls(
// CHECK: call @S1(
// CHECK-NOT: avial_launch
func.func private @S1(%A: memref<4xf64>) {
  return
}
func.func @calls(%A: memref<4xf64>) {
  call @S1(%A) : (memref<4xf64>) -> ()
  return
}

// -----

func.func private @S1(%A: memref<4xf64>, %z: vector<2xf64>) {
  return
}
func.func @refused(%A: memref<4xf64>, %z: vector<2xf64>) {
  // REFUSED: a number of type vector<2xf64> is not yet passed to a device
  call @S1(%A, %z) {avial.launch = array<i64: 0, -1>} : (memref<4xf64>, vector<2xf64>) -> ()
  return
}
