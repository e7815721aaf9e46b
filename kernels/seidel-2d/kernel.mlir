#less1 = affine_map<()[n] -> (n - 1)>
func.func @kernel_seidel_2d(%tsteps: index, %A: memref<${N}x${N}x${T}>) {
  ${extents}
  %nine = arith.constant 9.0 : ${T}
  affine.for %t = 0 to %tsteps {
    affine.for %i = 1 to #less1()[%n] {
      affine.for %j = 1 to #less1()[%n] {
        %a0 = affine.load %A[%i - 1, %j - 1] : memref<${N}x${N}x${T}>
        %a1 = affine.load %A[%i - 1, %j] : memref<${N}x${N}x${T}>
        %a2 = affine.load %A[%i - 1, %j + 1] : memref<${N}x${N}x${T}>
        %a3 = affine.load %A[%i, %j - 1] : memref<${N}x${N}x${T}>
        %a4 = affine.load %A[%i, %j] : memref<${N}x${N}x${T}>
        %a5 = affine.load %A[%i, %j + 1] : memref<${N}x${N}x${T}>
        %a6 = affine.load %A[%i + 1, %j - 1] : memref<${N}x${N}x${T}>
        %a7 = affine.load %A[%i + 1, %j] : memref<${N}x${N}x${T}>
        %a8 = affine.load %A[%i + 1, %j + 1] : memref<${N}x${N}x${T}>
        %s1 = arith.addf %a0, %a1 : ${T}
        %s2 = arith.addf %s1, %a2 : ${T}
        %s3 = arith.addf %s2, %a3 : ${T}
        %s4 = arith.addf %s3, %a4 : ${T}
        %s5 = arith.addf %s4, %a5 : ${T}
        %s6 = arith.addf %s5, %a6 : ${T}
        %s7 = arith.addf %s6, %a7 : ${T}
        %s8 = arith.addf %s7, %a8 : ${T}
        %average = arith.divf %s8, %nine : ${T}
        affine.store %average, %A[%i, %j] : memref<${N}x${N}x${T}>
      }
    }
  }
  return
}
