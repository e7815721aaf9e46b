func.func @kernel_2mm(%alpha: ${T}, %beta: ${T}, %tmp: memref<${NI}x${NJ}x${T}>,
                      %A: memref<${NI}x${NK}x${T}>, %B: memref<${NK}x${NJ}x${T}>,
                      %C: memref<${NJ}x${NL}x${T}>, %D: memref<${NI}x${NL}x${T}>) {
  ${extents}
  %zero = arith.constant ${zero} : ${T}
  affine.for %i = 0 to %ni {
    affine.for %j = 0 to %nj {
      affine.store %zero, %tmp[%i, %j] : memref<${NI}x${NJ}x${T}>
      affine.for %k = 0 to %nk {
        %a = affine.load %A[%i, %k] : memref<${NI}x${NK}x${T}>
        %b = affine.load %B[%k, %j] : memref<${NK}x${NJ}x${T}>
        %left = arith.mul${k} %alpha, %a : ${T}
        %product = arith.mul${k} %left, %b : ${T}
        %t = affine.load %tmp[%i, %j] : memref<${NI}x${NJ}x${T}>
        %sum = arith.add${k} %t, %product : ${T}
        affine.store %sum, %tmp[%i, %j] : memref<${NI}x${NJ}x${T}>
      }
    }
  }
  affine.for %i = 0 to %ni {
    affine.for %j = 0 to %nl {
      %d = affine.load %D[%i, %j] : memref<${NI}x${NL}x${T}>
      %scaled = arith.mul${k} %d, %beta : ${T}
      affine.store %scaled, %D[%i, %j] : memref<${NI}x${NL}x${T}>
      affine.for %k = 0 to %nj {
        %t = affine.load %tmp[%i, %k] : memref<${NI}x${NJ}x${T}>
        %c = affine.load %C[%k, %j] : memref<${NJ}x${NL}x${T}>
        %product = arith.mul${k} %t, %c : ${T}
        %old = affine.load %D[%i, %j] : memref<${NI}x${NL}x${T}>
        %sum = arith.add${k} %old, %product : ${T}
        affine.store %sum, %D[%i, %j] : memref<${NI}x${NL}x${T}>
      }
    }
  }
  return
}
