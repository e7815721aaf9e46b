// RUN: -p floor-wide-integers

// One less where there is a rest of the other sign; what has 64 bits stays.

// CHECK-LABEL: func.func @rounded(
// CHECK-DAG: %[[Z:.*]] = arith.constant 0 : i80
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i80
// CHECK: %[[R:.*]] = arith.remsi %[[A:.*]], %[[B:.*]] : i80
// CHECK: arith.cmpi ne, %[[R]], %[[Z]] : i80
// CHECK: arith.xori %[[R]], %[[B]] : i80
// CHECK: arith.select {{.*}}, %[[ONE]], %[[Z]] : i80
// CHECK: arith.divsi %[[A]], %[[B]] : i80
// CHECK: arith.subi
// CHECK-NOT: floordivsi {{.*}} : i80
// CHECK: arith.floordivsi {{.*}} : i64
func.func @rounded(%A: memref<8xi64>, %B: memref<8xi64>) {
  %d = arith.constant -7 : i64
  affine.for %i = 0 to 8 {
    %x = affine.load %A[%i] : memref<8xi64>
    %wide = arith.extsi %x : i64 to i80
    %by = arith.extsi %d : i64 to i80
    %q = arith.floordivsi %wide, %by : i80
    %low = arith.trunci %q : i80 to i64
    %p = arith.floordivsi %low, %d : i64
    affine.store %p, %B[%i] : memref<8xi64>
  }
  return
}
