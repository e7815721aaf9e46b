func.func @kernel_mvt(%x1: memref<${N}x${T}>, %x2: memref<${N}x${T}>, %y_1: memref<${N}x${T}>,
                      %y_2: memref<${N}x${T}>, %A: memref<${N}x${N}x${T}>) {
  ${extents}
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %n {
      %x = affine.load %x1[%i] : memref<${N}x${T}>
      %a = affine.load %A[%i, %j] : memref<${N}x${N}x${T}>
      %y = affine.load %y_1[%j] : memref<${N}x${T}>
      %product = arith.mul${k} %a, %y : ${T}
      %sum = arith.add${k} %x, %product : ${T}
      affine.store %sum, %x1[%i] : memref<${N}x${T}>
    }
  }
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %n {
      %x = affine.load %x2[%i] : memref<${N}x${T}>
      %a = affine.load %A[%j, %i] : memref<${N}x${N}x${T}>
      %y = affine.load %y_2[%j] : memref<${N}x${T}>
      %product = arith.mul${k} %a, %y : ${T}
      %sum = arith.add${k} %x, %product : ${T}
      affine.store %sum, %x2[%i] : memref<${N}x${T}>
    }
  }
  return
}
