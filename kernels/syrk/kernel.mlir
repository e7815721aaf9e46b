#past = affine_map<(d) -> (d + 1)>
func.func @kernel_syrk(%alpha: ${T}, %beta: ${T}, %C: memref<${N}x${N}x${T}>,
                       %A: memref<${N}x${M}x${T}>) {
  ${extents}
  affine.for %i = 0 to %n {
    affine.for %j = 0 to #past(%i) {
      %c = affine.load %C[%i, %j] : memref<${N}x${N}x${T}>
      %scaled = arith.mul${k} %c, %beta : ${T}
      affine.store %scaled, %C[%i, %j] : memref<${N}x${N}x${T}>
    }
    affine.for %k = 0 to %m {
      affine.for %j = 0 to #past(%i) {
        %c = affine.load %C[%i, %j] : memref<${N}x${N}x${T}>
        %ai = affine.load %A[%i, %k] : memref<${N}x${M}x${T}>
        %aj = affine.load %A[%j, %k] : memref<${N}x${M}x${T}>
        %left = arith.mul${k} %alpha, %ai : ${T}
        %product = arith.mul${k} %left, %aj : ${T}
        %sum = arith.add${k} %c, %product : ${T}
        affine.store %sum, %C[%i, %j] : memref<${N}x${N}x${T}>
      }
    }
  }
  return
}
