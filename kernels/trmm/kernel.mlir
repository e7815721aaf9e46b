#past = affine_map<(d) -> (d + 1)>
func.func @kernel_trmm(%alpha: ${T}, %A: memref<${M}x${M}x${T}>, %B: memref<${M}x${N}x${T}>) {
  ${extents}
  affine.for %i = 0 to %m {
    affine.for %j = 0 to %n {
      affine.for %k = #past(%i) to %m {
        %b = affine.load %B[%i, %j] : memref<${M}x${N}x${T}>
        %a = affine.load %A[%k, %i] : memref<${M}x${M}x${T}>
        %bk = affine.load %B[%k, %j] : memref<${M}x${N}x${T}>
        %product = arith.mul${k} %a, %bk : ${T}
        %sum = arith.add${k} %b, %product : ${T}
        affine.store %sum, %B[%i, %j] : memref<${M}x${N}x${T}>
      }
      %b = affine.load %B[%i, %j] : memref<${M}x${N}x${T}>
      %scaled = arith.mul${k} %alpha, %b : ${T}
      affine.store %scaled, %B[%i, %j] : memref<${M}x${N}x${T}>
    }
  }
  return
}
