#less1 = affine_map<()[n] -> (n - 1)>
func.func @kernel_seidel_9pt(%tsteps: index, %W: memref<3x3x${T}>,
                             %A: memref<${NX}x${NY}x${T}>) {
  ${extents}
  %zero = arith.constant 0.0 : ${T}
  affine.for %t = 0 to %tsteps {
    affine.for %i = 1 to #less1()[%nx] {
      affine.for %j = 1 to #less1()[%ny] {
        %sum = affine.for %p = 0 to 3 iter_args(%outer = %zero) -> (${T}) {
          %row = affine.for %q = 0 to 3 iter_args(%acc = %outer) -> (${T}) {
            %w = affine.load %W[%p, %q] : memref<3x3x${T}>
            %a = affine.load %A[%i + %p - 1, %j + %q - 1] : memref<${NX}x${NY}x${T}>
            %product = arith.mulf %w, %a : ${T}
            %next = arith.addf %acc, %product : ${T}
            affine.yield %next : ${T}
          }
          affine.yield %row : ${T}
        }
        affine.store %sum, %A[%i, %j] : memref<${NX}x${NY}x${T}>
      }
    }
  }
  return
}
