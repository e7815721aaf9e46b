// RUN: -p thread-loops,outline-drivers

// A small driver may run for a row: it stays as fast as LLVM makes it.
// CHECK-LABEL: func.func @small(
// CHECK-NOT: optnone
// CHECK: affine.for
// CHECK: omp.parallel
func.func @small(%A: memref<9xf32>, %B: memref<9x9xf32>, %x: f32) {
  affine.for %i = 1 to 9 {
    %a = affine.load %A[%i - 1] : memref<9xf32>
    affine.store %a, %A[%i] : memref<9xf32>
  }
  affine.for %i = 0 to 9 {
    affine.for %j = 0 to 9 {
      affine.store %x, %B[%i, %j] : memref<9x9xf32>
    }
  } {avial.parallel}
  return
}
