// RUN: -p align-vectors{lanes=8}

// Another array is written than is read: first vector, those from the boundary on, last vector.
// CHECK-LABEL: func.func @stencil(
// CHECK: affine.for
// CHECK: vector.load
// CHECK: vector.store {{.*}} vector<8xf32>
// CHECK: memref.extract_aligned_pointer_as_index %{{.*}}
// CHECK: scf.for
// CHECK: vector.load
// CHECK: vector.store
// CHECK: {avial.rolled}
// CHECK: vector.load
// CHECK: vector.store
// CHECK-NOT: affine.load
func.func @stencil(%A: memref<120x120xf32>, %B: memref<120x120xf32>) attributes {avial.no_alias} {
  affine.for %i = 1 to 119 {
    affine.for %j = 1 to 119 {
      %x = affine.load %A[%i - 1, %j] : memref<120x120xf32>
      %y = affine.load %A[%i, %j + 1] : memref<120x120xf32>
      %s = arith.addf %x, %y : f32
      affine.store %s, %B[%i, %j] : memref<120x120xf32>
    } {avial.independent}
  }
  return
}

// -----

// What is written was read: both ends have loaded before anything is stored, and are stored last.
// Half as many elements of twice the size; the number is spread, and what a row does not go along.
// CHECK-LABEL: func.func @in_place(
// CHECK: vector.broadcast %{{.*}} : f64 to vector<4xf64>
// CHECK: vector.load
// CHECK: vector.load
// CHECK: scf.for
// CHECK: memref.load %{{.*}}
// CHECK: vector.load
// CHECK: vector.store {{.*}} vector<4xf64>
// CHECK-NOT: vector.load
// CHECK: vector.store
// CHECK-NOT: vector.load
// CHECK: vector.store
// CHECK: return
func.func @in_place(%A: memref<9x300xf64>, %k: index, %x: f64) attributes {avial.no_alias} {
  affine.for %j = 1 to 300 {
    %l = affine.load %A[%k, 0] : memref<9x300xf64>
    %y = affine.load %A[5, %j] : memref<9x300xf64>
    %s = math.fma %y, %x, %l : f64
    affine.store %s, %A[5, %j] : memref<9x300xf64>
  } {avial.independent}
  return
}

// -----

// Not known to be independent; short; not side by side; of several widths; read after it was
// written; of a length that is not known.
// CHECK-LABEL: func.func @others(
// CHECK-NOT: vector
func.func @others(%A: memref<120x120xf32>, %B: memref<120x120xf32>, %C: memref<120xf64>, %n: index)
    attributes {avial.no_alias} {
  affine.for %j = 0 to 120 {
    %x = affine.load %A[0, %j] : memref<120x120xf32>
    affine.store %x, %B[0, %j] : memref<120x120xf32>
  }
  affine.for %j = 0 to 63 {
    %x = affine.load %A[0, %j] : memref<120x120xf32>
    affine.store %x, %B[0, %j] : memref<120x120xf32>
  } {avial.independent}
  affine.for %j = 0 to 120 {
    %x = affine.load %A[%j, 0] : memref<120x120xf32>
    affine.store %x, %B[0, %j] : memref<120x120xf32>
  } {avial.independent}
  affine.for %j = 0 to 120 {
    %x = affine.load %A[0, %j] : memref<120x120xf32>
    %y = arith.extf %x : f32 to f64
    affine.store %y, %C[%j] : memref<120xf64>
  } {avial.independent}
  affine.for %j = 0 to 120 {
    %x = affine.load %A[0, %j] : memref<120x120xf32>
    affine.store %x, %B[0, %j] : memref<120x120xf32>
    %y = affine.load %B[0, %j] : memref<120x120xf32>
    affine.store %y, %B[1, %j] : memref<120x120xf32>
  } {avial.independent}
  affine.for %j = 0 to %n {
    %x = affine.load %A[0, %j] : memref<120x120xf32>
    affine.store %x, %B[0, %j] : memref<120x120xf32>
  } {avial.independent}
  return
}
