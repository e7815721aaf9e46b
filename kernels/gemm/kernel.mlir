func.func @kernel_gemm(%alpha: ${T}, %beta: ${T}, %C: memref<${NI}x${NJ}x${T}>,
                       %A: memref<${NI}x${NK}x${T}>, %B: memref<${NK}x${NJ}x${T}>) {
  ${extents}
  affine.for %i = 0 to %ni {
    affine.for %j = 0 to %nj {
      %c = affine.load %C[%i, %j] : memref<${NI}x${NJ}x${T}>
      %scaled = arith.mul${k} %c, %beta : ${T}
      affine.store %scaled, %C[%i, %j] : memref<${NI}x${NJ}x${T}>
    }
    affine.for %k = 0 to %nk {
      affine.for %j = 0 to %nj {
        %a = affine.load %A[%i, %k] : memref<${NI}x${NK}x${T}>
        %b = affine.load %B[%k, %j] : memref<${NK}x${NJ}x${T}>
        %c = affine.load %C[%i, %j] : memref<${NI}x${NJ}x${T}>
        %left = arith.mul${k} %alpha, %a : ${T}
        %product = arith.mul${k} %left, %b : ${T}
        %sum = arith.add${k} %c, %product : ${T}
        affine.store %sum, %C[%i, %j] : memref<${NI}x${NJ}x${T}>
      }
    }
  }
  return
}
