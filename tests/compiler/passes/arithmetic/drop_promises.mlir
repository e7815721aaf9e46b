// RUN: -p drop-promises

// What folders merge promises nothing; sums keep what the analyses read.

// CHECK-LABEL: func.func @merged(
// CHECK: arith.trunci %{{.*}} : i64 to i32
// CHECK-NEXT: arith.trunci %{{.*}} : i32 to i8
// CHECK-NEXT: arith.extsi
// CHECK-NEXT: arith.shrsi %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : i64
// CHECK-NEXT: arith.divui %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : i64
// CHECK-NEXT: arith.addi %{{.*}} overflow<nsw> : i64
func.func @merged(%A: memref<9xi64>) {
  %c1 = arith.constant 1 : i64
  affine.for %i = 0 to 9 {
    %x = affine.load %A[%i] : memref<9xi64>
    %y = arith.trunci %x overflow<nsw, nuw> : i64 to i32
    %z = arith.trunci %y overflow<nsw> : i32 to i8
    %w = arith.extsi %z : i8 to i64
    %s = arith.shrsi %w, %c1 exact : i64
    %d = arith.divui %s, %c1 exact : i64
    %t = arith.addi %d, %c1 overflow<nsw> : i64
    affine.store %t, %A[%i] : memref<9xi64>
  }
  return
}
