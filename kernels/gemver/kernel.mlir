func.func @kernel_gemver(%alpha: ${T}, %beta: ${T}, %A: memref<${N}x${N}x${T}>,
                         %u1: memref<${N}x${T}>, %v1: memref<${N}x${T}>,
                         %u2: memref<${N}x${T}>, %v2: memref<${N}x${T}>, %w: memref<${N}x${T}>,
                         %x: memref<${N}x${T}>, %y: memref<${N}x${T}>, %z: memref<${N}x${T}>) {
  ${extents}
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %n {
      %a = affine.load %A[%i, %j] : memref<${N}x${N}x${T}>
      %l1 = affine.load %u1[%i] : memref<${N}x${T}>
      %r1 = affine.load %v1[%j] : memref<${N}x${T}>
      %l2 = affine.load %u2[%i] : memref<${N}x${T}>
      %r2 = affine.load %v2[%j] : memref<${N}x${T}>
      %p1 = arith.mul${k} %l1, %r1 : ${T}
      %s1 = arith.add${k} %a, %p1 : ${T}
      %p2 = arith.mul${k} %l2, %r2 : ${T}
      %s2 = arith.add${k} %s1, %p2 : ${T}
      affine.store %s2, %A[%i, %j] : memref<${N}x${N}x${T}>
    }
  }
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %n {
      %xi = affine.load %x[%i] : memref<${N}x${T}>
      %a = affine.load %A[%j, %i] : memref<${N}x${N}x${T}>
      %yj = affine.load %y[%j] : memref<${N}x${T}>
      %left = arith.mul${k} %beta, %a : ${T}
      %product = arith.mul${k} %left, %yj : ${T}
      %sum = arith.add${k} %xi, %product : ${T}
      affine.store %sum, %x[%i] : memref<${N}x${T}>
    }
  }
  affine.for %i = 0 to %n {
    %xi = affine.load %x[%i] : memref<${N}x${T}>
    %zi = affine.load %z[%i] : memref<${N}x${T}>
    %sum = arith.add${k} %xi, %zi : ${T}
    affine.store %sum, %x[%i] : memref<${N}x${T}>
  }
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %n {
      %wi = affine.load %w[%i] : memref<${N}x${T}>
      %a = affine.load %A[%i, %j] : memref<${N}x${N}x${T}>
      %xj = affine.load %x[%j] : memref<${N}x${T}>
      %left = arith.mul${k} %alpha, %a : ${T}
      %product = arith.mul${k} %left, %xj : ${T}
      %sum = arith.add${k} %wi, %product : ${T}
      affine.store %sum, %w[%i] : memref<${N}x${T}>
    }
  }
  return
}
