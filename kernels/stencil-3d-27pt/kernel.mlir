#less1 = affine_map<()[n] -> (n - 1)>
func.func @kernel_stencil_3d_27pt(%W: memref<3x3x3x${T}>, %A: memref<${NX}x${NY}x${NZ}x${T}>,
                                  %B: memref<${NX}x${NY}x${NZ}x${T}>) {
  ${extents}
  %zero = arith.constant ${zero} : ${T}
  affine.for %i = 1 to #less1()[%nx] {
    affine.for %j = 1 to #less1()[%ny] {
      affine.for %k = 1 to #less1()[%nz] {
        affine.store %zero, %B[%i, %j, %k] : memref<${NX}x${NY}x${NZ}x${T}>
        affine.for %p = 0 to 3 {
          affine.for %q = 0 to 3 {
            affine.for %r = 0 to 3 {
              %w = affine.load %W[%p, %q, %r] : memref<3x3x3x${T}>
              %a = affine.load %A[%i + %p - 1, %j + %q - 1, %k + %r - 1]
                  : memref<${NX}x${NY}x${NZ}x${T}>
              %product = arith.mul${k} %w, %a : ${T}
              %b = affine.load %B[%i, %j, %k] : memref<${NX}x${NY}x${NZ}x${T}>
              %sum = arith.add${k} %b, %product : ${T}
              affine.store %sum, %B[%i, %j, %k] : memref<${NX}x${NY}x${NZ}x${T}>
            }
          }
        }
      }
    }
  }
  return
}
