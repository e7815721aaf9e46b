func.func @kernel_bicg(%A: memref<${N}x${M}x${T}>, %s: memref<${M}x${T}>, %q: memref<${N}x${T}>,
                       %p: memref<${M}x${T}>, %r: memref<${N}x${T}>) {
  ${extents}
  %zero = arith.constant ${zero} : ${T}
  affine.for %i = 0 to %m {
    affine.store %zero, %s[%i] : memref<${M}x${T}>
  }
  affine.for %i = 0 to %n {
    affine.store %zero, %q[%i] : memref<${N}x${T}>
    affine.for %j = 0 to %m {
      %a = affine.load %A[%i, %j] : memref<${N}x${M}x${T}>
      %sj = affine.load %s[%j] : memref<${M}x${T}>
      %ri = affine.load %r[%i] : memref<${N}x${T}>
      %down = arith.mul${k} %ri, %a : ${T}
      %s_sum = arith.add${k} %sj, %down : ${T}
      affine.store %s_sum, %s[%j] : memref<${M}x${T}>
      %qi = affine.load %q[%i] : memref<${N}x${T}>
      %pj = affine.load %p[%j] : memref<${M}x${T}>
      %across = arith.mul${k} %a, %pj : ${T}
      %q_sum = arith.add${k} %qi, %across : ${T}
      affine.store %q_sum, %q[%i] : memref<${N}x${T}>
    }
  }
  return
}
