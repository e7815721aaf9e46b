// RUN: -p constant-globals

// Values that are only read are the same on every rank.

// CHECK: memref.global "private" constant @weights : memref<2xf64> = dense<[1.0{{.*}}, 2.0{{.*}}]>
// CHECK-NEXT: memref.global "private" constant @unused
// CHECK-NEXT: memref.global "private" @written
// CHECK-NEXT: memref.global "private" @copied
// CHECK-NEXT: memref.global "private" @empty : memref<2xf64> = uninitialized
// CHECK-LABEL: func.func @tables(
memref.global "private" @weights : memref<2xf64> = dense<[1.0, 2.0]>
memref.global "private" @unused : memref<2xf64> = dense<0.0>
memref.global "private" @written : memref<2xf64> = dense<0.0>
memref.global "private" @copied : memref<2xf64> = dense<0.0>
memref.global "private" @empty : memref<2xf64> = uninitialized
func.func @tables(%A: memref<2xf64>) {
  %w = memref.get_global @weights : memref<2xf64>
  %r = memref.get_global @written : memref<2xf64>
  %c = memref.get_global @copied : memref<2xf64>
  %e = memref.get_global @empty : memref<2xf64>
  affine.for %i = 0 to 2 {
    %a = affine.load %w[%i] : memref<2xf64>
    %b = affine.load %e[%i] : memref<2xf64>
    %s = arith.addf %a, %b : f64
    affine.store %s, %r[%i] : memref<2xf64>
  }
  memref.copy %A, %c : memref<2xf64> to memref<2xf64>
  return
}
