// RUN: -p jam-for-loads
// ON: x86_64 avx fma

// Six loads of a column in place of twelve; rows that are left over run one by one.
// CHECK-LABEL: func.func @column(
// CHECK: affine.for %[[I:.*]] = 1 to 70 step 4 {
// CHECK: affine.if #{{.*}}(%[[I]]) {
// CHECK: affine.for %[[J:.*]] = 0 to 70 {
// CHECK-COUNT-4: affine.store
// CHECK: } {avial.independent}
// CHECK: } else {
// CHECK: affine.for %[[ROW:.*]] = #{{.*}}(%[[I]]) to 70 {
// CHECK: affine.for
// CHECK-COUNT-1: affine.store
func.func @column(%A: memref<71x70xf64>, %B: memref<71x70xf64>) attributes {avial.no_alias} {
  affine.for %i = 1 to 70 {
    affine.for %j = 0 to 70 {
      %x = affine.load %A[%i - 1, %j] : memref<71x70xf64>
      %y = affine.load %A[%i, %j] : memref<71x70xf64>
      %z = affine.load %A[%i + 1, %j] : memref<71x70xf64>
      %s = arith.addf %x, %y : f64
      %t = arith.addf %s, %z : f64
      affine.store %t, %B[%i, %j] : memref<71x70xf64>
    } {avial.independent}
  }
  return
}

// -----

// Nobody said that its columns are independent.
// CHECK-LABEL: func.func @unmarked(
// CHECK-NOT: step 4
func.func @unmarked(%A: memref<71x70xf64>, %B: memref<71x70xf64>) attributes {avial.no_alias} {
  affine.for %i = 1 to 70 {
    affine.for %j = 0 to 70 {
      %x = affine.load %A[%i - 1, %j] : memref<71x70xf64>
      %y = affine.load %A[%i, %j] : memref<71x70xf64>
      %s = arith.addf %x, %y : f64
      affine.store %s, %B[%i, %j] : memref<71x70xf64>
    }
  }
  return
}
