#past = affine_map<(d) -> (d + 1)>
func.func @kernel_syr2k(%alpha: ${T}, %beta: ${T}, %C: memref<${N}x${N}x${T}>,
                        %A: memref<${N}x${M}x${T}>, %B: memref<${N}x${M}x${T}>) {
  ${extents}
  affine.for %i = 0 to %n {
    affine.for %j = 0 to #past(%i) {
      %c = affine.load %C[%i, %j] : memref<${N}x${N}x${T}>
      %scaled = arith.mul${k} %c, %beta : ${T}
      affine.store %scaled, %C[%i, %j] : memref<${N}x${N}x${T}>
    }
    affine.for %k = 0 to %m {
      affine.for %j = 0 to #past(%i) {
        %aj = affine.load %A[%j, %k] : memref<${N}x${M}x${T}>
        %bi = affine.load %B[%i, %k] : memref<${N}x${M}x${T}>
        %bj = affine.load %B[%j, %k] : memref<${N}x${M}x${T}>
        %ai = affine.load %A[%i, %k] : memref<${N}x${M}x${T}>
        %l1 = arith.mul${k} %aj, %alpha : ${T}
        %p1 = arith.mul${k} %l1, %bi : ${T}
        %l2 = arith.mul${k} %bj, %alpha : ${T}
        %p2 = arith.mul${k} %l2, %ai : ${T}
        %both = arith.add${k} %p1, %p2 : ${T}
        %c = affine.load %C[%i, %j] : memref<${N}x${N}x${T}>
        %sum = arith.add${k} %c, %both : ${T}
        affine.store %sum, %C[%i, %j] : memref<${N}x${N}x${T}>
      }
    }
  }
  return
}
