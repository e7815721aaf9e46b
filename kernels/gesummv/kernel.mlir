func.func @kernel_gesummv(%alpha: ${T}, %beta: ${T}, %A: memref<${N}x${N}x${T}>,
                          %B: memref<${N}x${N}x${T}>, %tmp: memref<${N}x${T}>,
                          %x: memref<${N}x${T}>, %y: memref<${N}x${T}>) {
  ${extents}
  %zero = arith.constant ${zero} : ${T}
  affine.for %i = 0 to %n {
    affine.store %zero, %tmp[%i] : memref<${N}x${T}>
    affine.store %zero, %y[%i] : memref<${N}x${T}>
    affine.for %j = 0 to %n {
      %v = affine.load %x[%j] : memref<${N}x${T}>
      %a = affine.load %A[%i, %j] : memref<${N}x${N}x${T}>
      %t = affine.load %tmp[%i] : memref<${N}x${T}>
      %av = arith.mul${k} %a, %v : ${T}
      %t_sum = arith.add${k} %av, %t : ${T}
      affine.store %t_sum, %tmp[%i] : memref<${N}x${T}>
      %b = affine.load %B[%i, %j] : memref<${N}x${N}x${T}>
      %u = affine.load %y[%i] : memref<${N}x${T}>
      %bv = arith.mul${k} %b, %v : ${T}
      %u_sum = arith.add${k} %bv, %u : ${T}
      affine.store %u_sum, %y[%i] : memref<${N}x${T}>
    }
    %t = affine.load %tmp[%i] : memref<${N}x${T}>
    %u = affine.load %y[%i] : memref<${N}x${T}>
    %at = arith.mul${k} %alpha, %t : ${T}
    %bu = arith.mul${k} %beta, %u : ${T}
    %sum = arith.add${k} %at, %bu : ${T}
    affine.store %sum, %y[%i] : memref<${N}x${T}>
  }
  return
}
