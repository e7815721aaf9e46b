#less1 = affine_map<()[n] -> (n - 1)>
func.func @kernel_jacobi_2d(%tsteps: index, %A: memref<${N}x${N}x${T}>,
                            %B: memref<${N}x${N}x${T}>) {
  ${extents}
  %fifth = arith.constant 0.2 : ${T}
  affine.for %t = 0 to %tsteps {
    affine.for %i = 1 to #less1()[%n] {
      affine.for %j = 1 to #less1()[%n] {
        %c = affine.load %A[%i, %j] : memref<${N}x${N}x${T}>
        %west = affine.load %A[%i, %j - 1] : memref<${N}x${N}x${T}>
        %east = affine.load %A[%i, %j + 1] : memref<${N}x${N}x${T}>
        %south = affine.load %A[%i + 1, %j] : memref<${N}x${N}x${T}>
        %north = affine.load %A[%i - 1, %j] : memref<${N}x${N}x${T}>
        %s1 = arith.addf %c, %west : ${T}
        %s2 = arith.addf %s1, %east : ${T}
        %s3 = arith.addf %s2, %south : ${T}
        %s4 = arith.addf %s3, %north : ${T}
        %average = arith.mulf %fifth, %s4 : ${T}
        affine.store %average, %B[%i, %j] : memref<${N}x${N}x${T}>
      }
    }
    affine.for %i = 1 to #less1()[%n] {
      affine.for %j = 1 to #less1()[%n] {
        %c = affine.load %B[%i, %j] : memref<${N}x${N}x${T}>
        %west = affine.load %B[%i, %j - 1] : memref<${N}x${N}x${T}>
        %east = affine.load %B[%i, %j + 1] : memref<${N}x${N}x${T}>
        %south = affine.load %B[%i + 1, %j] : memref<${N}x${N}x${T}>
        %north = affine.load %B[%i - 1, %j] : memref<${N}x${N}x${T}>
        %s1 = arith.addf %c, %west : ${T}
        %s2 = arith.addf %s1, %east : ${T}
        %s3 = arith.addf %s2, %south : ${T}
        %s4 = arith.addf %s3, %north : ${T}
        %average = arith.mulf %fifth, %s4 : ${T}
        affine.store %average, %A[%i, %j] : memref<${N}x${N}x${T}>
      }
    }
  }
  return
}
