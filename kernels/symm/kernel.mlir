#id = affine_map<(d) -> (d)>
func.func @kernel_symm(%alpha: ${T}, %beta: ${T}, %C: memref<${M}x${N}x${T}>,
                       %A: memref<${M}x${M}x${T}>, %B: memref<${M}x${N}x${T}>) {
  ${extents}
  %zero = arith.constant ${zero} : ${T}
  affine.for %i = 0 to %m {
    affine.for %j = 0 to %n {
      %temp = affine.for %k = 0 to #id(%i) iter_args(%acc = %zero) -> (${T}) {
        %bi = affine.load %B[%i, %j] : memref<${M}x${N}x${T}>
        %a = affine.load %A[%i, %k] : memref<${M}x${M}x${T}>
        %c = affine.load %C[%k, %j] : memref<${M}x${N}x${T}>
        %left = arith.mul${k} %alpha, %bi : ${T}
        %up = arith.mul${k} %left, %a : ${T}
        %c_sum = arith.add${k} %c, %up : ${T}
        affine.store %c_sum, %C[%k, %j] : memref<${M}x${N}x${T}>
        %bk = affine.load %B[%k, %j] : memref<${M}x${N}x${T}>
        %down = arith.mul${k} %bk, %a : ${T}
        %next = arith.add${k} %acc, %down : ${T}
        affine.yield %next : ${T}
      }
      %c = affine.load %C[%i, %j] : memref<${M}x${N}x${T}>
      %bi = affine.load %B[%i, %j] : memref<${M}x${N}x${T}>
      %a = affine.load %A[%i, %i] : memref<${M}x${M}x${T}>
      %scaled = arith.mul${k} %beta, %c : ${T}
      %left = arith.mul${k} %alpha, %bi : ${T}
      %diagonal = arith.mul${k} %left, %a : ${T}
      %s1 = arith.add${k} %scaled, %diagonal : ${T}
      %rest = arith.mul${k} %alpha, %temp : ${T}
      %s2 = arith.add${k} %s1, %rest : ${T}
      affine.store %s2, %C[%i, %j] : memref<${M}x${N}x${T}>
    }
  }
  return
}
