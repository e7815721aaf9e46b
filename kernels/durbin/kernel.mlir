#id = affine_map<(d) -> (d)>
func.func @kernel_durbin(%r: memref<${N}x${T}>, %y: memref<${N}x${T}>, %z: memref<${N}x${T}>) {
  ${extents}
  %zero = arith.constant 0.0 : ${T}
  %one = arith.constant 1.0 : ${T}
  %r0 = affine.load %r[0] : memref<${N}x${T}>
  %first = arith.negf %r0 : ${T}
  affine.store %first, %y[0] : memref<${N}x${T}>
  %last:2 = affine.for %k = 1 to %n iter_args(%alpha = %first, %beta = %one) -> (${T}, ${T}) {
    %square = arith.mulf %alpha, %alpha : ${T}
    %left = arith.subf %one, %square : ${T}
    %beta_k = arith.mulf %left, %beta : ${T}
    %sum = affine.for %i = 0 to #id(%k) iter_args(%acc = %zero) -> (${T}) {
      %ri = affine.load %r[%k - %i - 1] : memref<${N}x${T}>
      %yi = affine.load %y[%i] : memref<${N}x${T}>
      %product = arith.mulf %ri, %yi : ${T}
      %next = arith.addf %acc, %product : ${T}
      affine.yield %next : ${T}
    }
    %rk = affine.load %r[%k] : memref<${N}x${T}>
    %total = arith.addf %rk, %sum : ${T}
    %minus = arith.negf %total : ${T}
    %alpha_k = arith.divf %minus, %beta_k : ${T}
    affine.for %i = 0 to #id(%k) {
      %yi = affine.load %y[%i] : memref<${N}x${T}>
      %mirror = affine.load %y[%k - %i - 1] : memref<${N}x${T}>
      %product = arith.mulf %alpha_k, %mirror : ${T}
      %zi = arith.addf %yi, %product : ${T}
      affine.store %zi, %z[%i] : memref<${N}x${T}>
    }
    affine.for %i = 0 to #id(%k) {
      %zi = affine.load %z[%i] : memref<${N}x${T}>
      affine.store %zi, %y[%i] : memref<${N}x${T}>
    }
    affine.store %alpha_k, %y[%k] : memref<${N}x${T}>
    affine.yield %alpha_k, %beta_k : ${T}, ${T}
  }
  return
}
