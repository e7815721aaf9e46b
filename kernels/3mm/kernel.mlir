func.func @kernel_3mm(%E: memref<${NI}x${NJ}x${T}>, %A: memref<${NI}x${NK}x${T}>,
                      %B: memref<${NK}x${NJ}x${T}>, %F: memref<${NJ}x${NL}x${T}>,
                      %C: memref<${NJ}x${NM}x${T}>, %D: memref<${NM}x${NL}x${T}>,
                      %G: memref<${NI}x${NL}x${T}>) {
  ${extents}
  %zero = arith.constant ${zero} : ${T}
  affine.for %i = 0 to %ni {
    affine.for %j = 0 to %nj {
      affine.store %zero, %E[%i, %j] : memref<${NI}x${NJ}x${T}>
      affine.for %k = 0 to %nk {
        %a = affine.load %A[%i, %k] : memref<${NI}x${NK}x${T}>
        %b = affine.load %B[%k, %j] : memref<${NK}x${NJ}x${T}>
        %product = arith.mul${k} %a, %b : ${T}
        %e = affine.load %E[%i, %j] : memref<${NI}x${NJ}x${T}>
        %sum = arith.add${k} %e, %product : ${T}
        affine.store %sum, %E[%i, %j] : memref<${NI}x${NJ}x${T}>
      }
    }
  }
  affine.for %i = 0 to %nj {
    affine.for %j = 0 to %nl {
      affine.store %zero, %F[%i, %j] : memref<${NJ}x${NL}x${T}>
      affine.for %k = 0 to %nm {
        %c = affine.load %C[%i, %k] : memref<${NJ}x${NM}x${T}>
        %d = affine.load %D[%k, %j] : memref<${NM}x${NL}x${T}>
        %product = arith.mul${k} %c, %d : ${T}
        %f = affine.load %F[%i, %j] : memref<${NJ}x${NL}x${T}>
        %sum = arith.add${k} %f, %product : ${T}
        affine.store %sum, %F[%i, %j] : memref<${NJ}x${NL}x${T}>
      }
    }
  }
  affine.for %i = 0 to %ni {
    affine.for %j = 0 to %nl {
      affine.store %zero, %G[%i, %j] : memref<${NI}x${NL}x${T}>
      affine.for %k = 0 to %nj {
        %e = affine.load %E[%i, %k] : memref<${NI}x${NJ}x${T}>
        %f = affine.load %F[%k, %j] : memref<${NJ}x${NL}x${T}>
        %product = arith.mul${k} %e, %f : ${T}
        %g = affine.load %G[%i, %j] : memref<${NI}x${NL}x${T}>
        %sum = arith.add${k} %g, %product : ${T}
        affine.store %sum, %G[%i, %j] : memref<${NI}x${NL}x${T}>
      }
    }
  }
  return
}
