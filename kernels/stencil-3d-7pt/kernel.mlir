#less1 = affine_map<()[n] -> (n - 1)>
func.func @kernel_stencil_3d_7pt(%tsteps: index, %alpha: ${T}, %beta: ${T},
                                 %A: memref<${NX}x${NY}x${NZ}x${T}>,
                                 %B: memref<${NX}x${NY}x${NZ}x${T}>) {
  ${extents}
  affine.for %t = 0 to %tsteps {
    affine.for %i = 1 to #less1()[%nx] {
      affine.for %j = 1 to #less1()[%ny] {
        affine.for %k = 1 to #less1()[%nz] {
          %c = affine.load %A[%i, %j, %k] : memref<${NX}x${NY}x${NZ}x${T}>
          %west = affine.load %A[%i - 1, %j, %k] : memref<${NX}x${NY}x${NZ}x${T}>
          %east = affine.load %A[%i + 1, %j, %k] : memref<${NX}x${NY}x${NZ}x${T}>
          %south = affine.load %A[%i, %j - 1, %k] : memref<${NX}x${NY}x${NZ}x${T}>
          %north = affine.load %A[%i, %j + 1, %k] : memref<${NX}x${NY}x${NZ}x${T}>
          %below = affine.load %A[%i, %j, %k - 1] : memref<${NX}x${NY}x${NZ}x${T}>
          %above = affine.load %A[%i, %j, %k + 1] : memref<${NX}x${NY}x${NZ}x${T}>
          %s1 = arith.addf %west, %east : ${T}
          %s2 = arith.addf %s1, %south : ${T}
          %s3 = arith.addf %s2, %north : ${T}
          %s4 = arith.addf %s3, %below : ${T}
          %s5 = arith.addf %s4, %above : ${T}
          %centre = arith.mulf %alpha, %c : ${T}
          %around = arith.mulf %beta, %s5 : ${T}
          %new = arith.addf %centre, %around : ${T}
          affine.store %new, %B[%i, %j, %k] : memref<${NX}x${NY}x${NZ}x${T}>
        }
      }
    }
    affine.for %i = 1 to #less1()[%nx] {
      affine.for %j = 1 to #less1()[%ny] {
        affine.for %k = 1 to #less1()[%nz] {
          %c = affine.load %B[%i, %j, %k] : memref<${NX}x${NY}x${NZ}x${T}>
          %west = affine.load %B[%i - 1, %j, %k] : memref<${NX}x${NY}x${NZ}x${T}>
          %east = affine.load %B[%i + 1, %j, %k] : memref<${NX}x${NY}x${NZ}x${T}>
          %south = affine.load %B[%i, %j - 1, %k] : memref<${NX}x${NY}x${NZ}x${T}>
          %north = affine.load %B[%i, %j + 1, %k] : memref<${NX}x${NY}x${NZ}x${T}>
          %below = affine.load %B[%i, %j, %k - 1] : memref<${NX}x${NY}x${NZ}x${T}>
          %above = affine.load %B[%i, %j, %k + 1] : memref<${NX}x${NY}x${NZ}x${T}>
          %s1 = arith.addf %west, %east : ${T}
          %s2 = arith.addf %s1, %south : ${T}
          %s3 = arith.addf %s2, %north : ${T}
          %s4 = arith.addf %s3, %below : ${T}
          %s5 = arith.addf %s4, %above : ${T}
          %centre = arith.mulf %alpha, %c : ${T}
          %around = arith.mulf %beta, %s5 : ${T}
          %new = arith.addf %centre, %around : ${T}
          affine.store %new, %A[%i, %j, %k] : memref<${NX}x${NY}x${NZ}x${T}>
        }
      }
    }
  }
  return
}
