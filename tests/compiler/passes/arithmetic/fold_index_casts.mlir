// RUN: -p fold-index-casts

// A loop's variable fits where its bounds do; a type of 64 bits has room for all.

// CHECK-LABEL: func.func @fits(
// CHECK: affine.for %[[I:.*]] = 0 to 9 {
// CHECK: memref.load %{{.*}}[%[[I]]] : memref<9xi32>
// CHECK: memref.load %{{.*}}[%[[I]]] : memref<9xi32>
// CHECK: %[[J:.*]] = affine.apply
// CHECK: memref.load %{{.*}}[%[[J]]] : memref<9xi32>
// CHECK: memref.load %{{.*}}[%[[I]]] : memref<9xi32>
func.func @fits(%A: memref<9xi32>, %B: memref<9xi32>) {
  affine.for %i = 0 to 9 {
    %0 = arith.index_cast %i : index to i32
    %1 = arith.index_cast %0 : i32 to index
    %x = memref.load %A[%1] : memref<9xi32>
    %2 = arith.index_cast %i : index to i64
    %3 = arith.index_cast %2 : i64 to index
    %y = memref.load %A[%3] : memref<9xi32>
    %j = affine.apply affine_map<(d0) -> (8 - d0)>(%i)
    %4 = arith.index_cast %j : index to i8
    %5 = arith.index_cast %4 : i8 to index
    %z = memref.load %A[%5] : memref<9xi32>
    %6 = arith.index_castui %i : index to i16
    %7 = arith.index_castui %6 : i16 to index
    %w = memref.load %A[%7] : memref<9xi32>
    %s = arith.addi %x, %y : i32
    %t = arith.addi %s, %z : i32
    %u = arith.addi %t, %w : i32
    affine.store %u, %B[%i] : memref<9xi32>
  }
  return
}

// -----

// What is cut stays, and what is extended in another way.

// CHECK-LABEL: func.func @cut(
// CHECK: %[[C:.*]] = arith.index_cast %{{.*}} : index to i8
// CHECK: arith.index_cast %[[C]] : i8 to index
// CHECK: %[[D:.*]] = arith.index_cast %{{.*}} : index to i8
// CHECK: arith.index_castui %[[D]] : i8 to index
func.func @cut(%A: memref<300xi64>) {
  affine.for %i = 0 to 300 {
    %0 = arith.index_cast %i : index to i8
    %1 = arith.index_cast %0 : i8 to index
    %j = affine.apply affine_map<(d0) -> (d0 - 150)>(%i)
    %2 = arith.index_cast %j : index to i8
    %3 = arith.index_castui %2 : i8 to index
    %4 = arith.addi %1, %3 : index
    %5 = arith.index_cast %4 : index to i64
    affine.store %5, %A[%i] : memref<300xi64>
  }
  return
}

// -----

// From an integer and back: extended, and cut again.

// CHECK-LABEL: func.func @extended(
// CHECK: %[[X:.*]] = affine.load
// CHECK-NOT: index_cast
// CHECK: affine.store %[[X]]
func.func @extended(%A: memref<9xi8>) {
  affine.for %i = 0 to 9 {
    %x = affine.load %A[%i] : memref<9xi8>
    %0 = arith.index_castui %x : i8 to index
    %1 = arith.index_cast %0 : index to i8
    affine.store %1, %A[%i] : memref<9xi8>
  }
  return
}
