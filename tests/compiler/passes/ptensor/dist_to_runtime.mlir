// RUN: -p dist-to-runtime

// Partial results are combined in pairs of neighbours: of five, the last goes with none until the end.

// CHECK-LABEL: func.func @partial(
// CHECK: %[[L:.*]] = memref.alloc() : memref<3x4xf64>
// CHECK: affine.for %{{.*}} = 0 to 2 {
// CHECK: } {avial.divided}
// CHECK: affine.load %{{.*}}[4, %{{.*}}] : memref<5x4xf64>
// CHECK: affine.store %{{.*}}, %[[L]][2, %{{.*}}]
// CHECK: memref.alloc() : memref<2x4xf64>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}] : memref<4xf64>
// CHECK-NOT: dist.
func.func @partial(%A: memref<5x4xf64>, %S: memref<4xf64>) {
  %a = "dist.register_dtensor"(%A) : (memref<5x4xf64>) -> i64
  %s = "dist.register_dtensor"(%S) : (memref<4xf64>) -> i64
  "dist.finalize_reduce"(%a, %s) {op = "sum"} : (i64, i64) -> ()
  return
}

// -----

// Of one array to itself: as it was before. The memory that it takes is given back.

// CHECK-LABEL: func.func @moved(
// CHECK: %[[T:.*]] = memref.alloc() : memref<8xf64>
// CHECK: memref.copy %{{.*}}, %[[T]]
// CHECK: memref.copy %[[T]], %
// CHECK: memref.dealloc %[[T]]
func.func @moved(%A: memref<9xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %a = "dist.register_dtensor"(%A) : (memref<9xf64>) -> i64
  %l, %L = "dist.create_view"(%a, %c0, %c8, %c1) : (i64, index, index, index) -> (i64, memref<8xf64, strided<[1]>>)
  %r, %R = "dist.create_view"(%a, %c1, %c8, %c1) : (i64, index, index, index) -> (i64, memref<8xf64, strided<[1], offset: 1>>)
  "dist.copy_view"(%l, %r) : (i64, i64) -> ()
  return
}

// -----

// A view of a view; what is known of it goes into the loops.

// CHECK-LABEL: func.func @between(
// CHECK: affine.for %[[I:.*]] = 0 to 2 {
// CHECK-NEXT: %[[X:.*]] = affine.load %{{.*}}[%[[I]] * 4 + 3] : memref<9xf64>
// CHECK-NEXT: affine.store %[[X]], %{{.*}}[%[[I]]] : memref<2xf64>
func.func @between(%A: memref<9xf64>, %B: memref<2xf64>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %a = "dist.register_dtensor"(%A) : (memref<9xf64>) -> i64
  %b = "dist.register_dtensor"(%B) : (memref<2xf64>) -> i64
  %v, %V = "dist.create_view"(%a, %c1, %c4, %c2) : (i64, index, index, index) -> (i64, memref<4xf64, strided<[2], offset: 1>>)
  %w, %W = "dist.create_view"(%v, %c1, %c2, %c2) : (i64, index, index, index) -> (i64, memref<2xf64, strided<[4], offset: 3>>)
  "dist.copy_view"(%w, %b) : (i64, i64) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @allocated(
// CHECK: %[[P:.*]] = memref.alloc() : memref<2x3xf64>
// CHECK: affine.store %{{.*}}, %[[P]][0, %{{.*}}] : memref<2x3xf64>
// CHECK: memref.dealloc %[[P]]
func.func @allocated(%A: memref<2x3xf64>, %B: memref<2x3xf64>) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %a = "dist.register_dtensor"(%A) : (memref<2x3xf64>) -> i64
  %b = "dist.register_dtensor"(%B) : (memref<2x3xf64>) -> i64
  %p, %P = "dist.alloc_dtensor"(%c2, %c3) : (index, index) -> (i64, memref<2x3xf64>)
  "dist.copy_view"(%a, %p) : (i64, i64) -> ()
  "dist.finalize_reduce"(%p) {op = "max"} : (i64) -> ()
  "dist.copy_view"(%p, %b) : (i64, i64) -> ()
  "dist.dealloc_dtensor"(%p) : (i64) -> ()
  return
}

// -----

// What each of four ranks has of nine rows.

// CHECK-LABEL: func.func @shapes(
// CHECK: affine.for %[[R:.*]] = 0 to 4 {
// CHECK: arith.divui
// CHECK-NOT: dist
func.func @shapes(%A: memref<?x3xf64>, %N: memref<4x2xindex>) {
  %a = "dist.register_dtensor"(%A) : (memref<?x3xf64>) -> i64
  affine.for %r = 0 to 4 {
    %rows, %columns = "dist.local_shape"(%a) : (i64) -> (index, index)
    affine.store %rows, %N[%r, 0] : memref<4x2xindex>
    affine.store %columns, %N[%r, 1] : memref<4x2xindex>
  } {dist.ranks}
  return
}

// -----

func.func @unknown(%a: i64) {
  // REFUSED: operand 0 of dist.dealloc_dtensor is no dtensor of this function
  "dist.dealloc_dtensor"(%a) : (i64) -> ()
  return
}

// -----

func.func @nowhere(%A: memref<4xf64>) {
  %a = "dist.register_dtensor"(%A) : (memref<4xf64>) -> i64
  // REFUSED: dist.local_shape stands in no loop over ranks
  %rows = "dist.local_shape"(%a) : (i64) -> index
  return
}

// -----

func.func @other(%A: memref<4xf64>, %B: memref<3xf64>) {
  %a = "dist.register_dtensor"(%A) : (memref<4xf64>) -> i64
  %b = "dist.register_dtensor"(%B) : (memref<3xf64>) -> i64
  // REFUSED: dist.copy_view copies [4] to [3]
  "dist.copy_view"(%a, %b) : (i64, i64) -> ()
  return
}

// -----

func.func @mean(%A: memref<4xf64>) {
  %a = "dist.register_dtensor"(%A) : (memref<4xf64>) -> i64
  // REFUSED: there is no reduction mean of f64 in memory of f64
  "dist.finalize_reduce"(%a) {op = "mean"} : (i64) -> ()
  return
}
