#less1 = affine_map<()[n] -> (n - 1)>
func.func @kernel_jacobi_1d(%tsteps: index, %A: memref<${N}x${T}>, %B: memref<${N}x${T}>) {
  ${extents}
  %third = arith.constant 0.33333 : ${T}
  affine.for %t = 0 to %tsteps {
    affine.for %i = 1 to #less1()[%n] {
      %l = affine.load %A[%i - 1] : memref<${N}x${T}>
      %c = affine.load %A[%i] : memref<${N}x${T}>
      %r = affine.load %A[%i + 1] : memref<${N}x${T}>
      %s1 = arith.addf %l, %c : ${T}
      %s2 = arith.addf %s1, %r : ${T}
      %average = arith.mulf %third, %s2 : ${T}
      affine.store %average, %B[%i] : memref<${N}x${T}>
    }
    affine.for %i = 1 to #less1()[%n] {
      %l = affine.load %B[%i - 1] : memref<${N}x${T}>
      %c = affine.load %B[%i] : memref<${N}x${T}>
      %r = affine.load %B[%i + 1] : memref<${N}x${T}>
      %s1 = arith.addf %l, %c : ${T}
      %s2 = arith.addf %s1, %r : ${T}
      %average = arith.mulf %third, %s2 : ${T}
      affine.store %average, %A[%i] : memref<${N}x${T}>
    }
  }
  return
}
