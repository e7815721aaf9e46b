func.func @kernel_atax(%A: memref<${M}x${N}x${T}>, %x: memref<${N}x${T}>,
                       %y: memref<${N}x${T}>, %tmp: memref<${M}x${T}>) {
  ${extents}
  %zero = arith.constant ${zero} : ${T}
  affine.for %i = 0 to %n {
    affine.store %zero, %y[%i] : memref<${N}x${T}>
  }
  affine.for %i = 0 to %m {
    affine.store %zero, %tmp[%i] : memref<${M}x${T}>
    affine.for %j = 0 to %n {
      %t = affine.load %tmp[%i] : memref<${M}x${T}>
      %a = affine.load %A[%i, %j] : memref<${M}x${N}x${T}>
      %v = affine.load %x[%j] : memref<${N}x${T}>
      %product = arith.mul${k} %a, %v : ${T}
      %sum = arith.add${k} %t, %product : ${T}
      affine.store %sum, %tmp[%i] : memref<${M}x${T}>
    }
    affine.for %j = 0 to %n {
      %v = affine.load %y[%j] : memref<${N}x${T}>
      %a = affine.load %A[%i, %j] : memref<${M}x${N}x${T}>
      %t = affine.load %tmp[%i] : memref<${M}x${T}>
      %product = arith.mul${k} %a, %t : ${T}
      %sum = arith.add${k} %v, %product : ${T}
      affine.store %sum, %y[%j] : memref<${N}x${T}>
    }
  }
  return
}
