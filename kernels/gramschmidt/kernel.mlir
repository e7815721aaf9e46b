#past = affine_map<(d) -> (d + 1)>
func.func @kernel_gramschmidt(%A: memref<${M}x${N}x${T}>, %R: memref<${N}x${N}x${T}>,
                              %Q: memref<${M}x${N}x${T}>) {
  ${extents}
  %zero = arith.constant 0.0 : ${T}
  affine.for %k = 0 to %n {
    %norm2 = affine.for %i = 0 to %m iter_args(%acc = %zero) -> (${T}) {
      %a = affine.load %A[%i, %k] : memref<${M}x${N}x${T}>
      %square = arith.mulf %a, %a : ${T}
      %next = arith.addf %acc, %square : ${T}
      affine.yield %next : ${T}
    }
    %norm = math.sqrt %norm2 : ${T}
    affine.store %norm, %R[%k, %k] : memref<${N}x${N}x${T}>
    affine.for %i = 0 to %m {
      %a = affine.load %A[%i, %k] : memref<${M}x${N}x${T}>
      %r = affine.load %R[%k, %k] : memref<${N}x${N}x${T}>
      %q = arith.divf %a, %r : ${T}
      affine.store %q, %Q[%i, %k] : memref<${M}x${N}x${T}>
    }
    affine.for %j = #past(%k) to %n {
      affine.store %zero, %R[%k, %j] : memref<${N}x${N}x${T}>
      affine.for %i = 0 to %m {
        %r = affine.load %R[%k, %j] : memref<${N}x${N}x${T}>
        %q = affine.load %Q[%i, %k] : memref<${M}x${N}x${T}>
        %a = affine.load %A[%i, %j] : memref<${M}x${N}x${T}>
        %product = arith.mulf %q, %a : ${T}
        %sum = arith.addf %r, %product : ${T}
        affine.store %sum, %R[%k, %j] : memref<${N}x${N}x${T}>
      }
      affine.for %i = 0 to %m {
        %a = affine.load %A[%i, %j] : memref<${M}x${N}x${T}>
        %q = affine.load %Q[%i, %k] : memref<${M}x${N}x${T}>
        %r = affine.load %R[%k, %j] : memref<${N}x${N}x${T}>
        %product = arith.mulf %q, %r : ${T}
        %rest = arith.subf %a, %product : ${T}
        affine.store %rest, %A[%i, %j] : memref<${M}x${N}x${T}>
      }
    }
  }
  return
}
