// RUN: -p reset-globals

// What is written begins every run with its first values; constants, and what has none, stay as
// they are.

// CHECK: memref.global "private" constant @count.first : memref<4xf64> = dense<[1.0{{.*}}, 2.0{{.*}}, 3.0{{.*}}, 4.0
// CHECK-NEXT: memref.global "private" @count : memref<4xf64>
// CHECK-NEXT: memref.global "private" constant @table
// CHECK-NEXT: memref.global "private" @empty : memref<2xf64> = uninitialized
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:.*]]: memref<4xf64>) attributes {llvm.emit_c_interface} {
// CHECK-NEXT: %[[V0:.*]] = memref.get_global @count.first : memref<4xf64>
// CHECK-NEXT: %[[V1:.*]] = memref.get_global @count : memref<4xf64>
// CHECK-NEXT: memref.copy %[[V0]], %[[V1]] : memref<4xf64> to memref<4xf64>
// CHECK-NEXT: %[[N:.*]] = memref.get_global @count : memref<4xf64>
// CHECK-NEXT: memref.copy %[[A]], %[[N]] : memref<4xf64> to memref<4xf64>
// CHECK-NEXT: return
// CHECK-LABEL: func.func private @helper(
// CHECK-NEXT: return
memref.global "private" @count : memref<4xf64> = dense<[1.0, 2.0, 3.0, 4.0]>
memref.global "private" constant @table : memref<2xf64> = dense<[5.0, 6.0]>
memref.global "private" @empty : memref<2xf64> = uninitialized
func.func @main(%A: memref<4xf64>) attributes {llvm.emit_c_interface} {
  %n = memref.get_global @count : memref<4xf64>
  memref.copy %A, %n : memref<4xf64> to memref<4xf64>
  return
}
func.func private @helper() {
  return
}

// -----

// A name that is taken is not given again.

// CHECK: constant @n.first.first : memref<1xi32> = dense<7>
// CHECK-NEXT: memref.global "private" @n.first : memref<1xi32> = dense<7>
// CHECK-NEXT: constant @n.first_ : memref<1xi32> = dense<8>
// CHECK-NEXT: memref.global "private" @n : memref<1xi32> = dense<8>
// CHECK-LABEL: func.func @taken(
// CHECK-NEXT: %[[V0:.*]] = memref.get_global @n.first_ : memref<1xi32>
// CHECK-NEXT: %[[V1:.*]] = memref.get_global @n : memref<1xi32>
// CHECK-NEXT: memref.copy %[[V0]], %[[V1]] : memref<1xi32> to memref<1xi32>
// CHECK-NEXT: %[[V2:.*]] = memref.get_global @n.first.first : memref<1xi32>
// CHECK-NEXT: %[[V3:.*]] = memref.get_global @n.first : memref<1xi32>
// CHECK-NEXT: memref.copy %[[V2]], %[[V3]] : memref<1xi32> to memref<1xi32>
// CHECK-NEXT: return
memref.global "private" @n.first : memref<1xi32> = dense<7>
memref.global "private" @n : memref<1xi32> = dense<8>
func.func @taken() attributes {llvm.emit_c_interface} {
  return
}

// -----

// Without a function that an engine calls there is no run to begin.

// CHECK-NOT: constant
// CHECK-LABEL: func.func @nobody_calls_it(
// CHECK-NEXT: return
// CHECK-NOT: memref
memref.global "private" @n : memref<1xi32> = dense<8>
func.func @nobody_calls_it() {
  return
}
