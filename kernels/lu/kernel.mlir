#id = affine_map<(d) -> (d)>
func.func @kernel_lu(%A: memref<${N}x${N}x${T}>) {
  ${extents}
  affine.for %i = 0 to %n {
    affine.for %j = 0 to #id(%i) {
      affine.for %k = 0 to #id(%j) {
        %a = affine.load %A[%i, %j] : memref<${N}x${N}x${T}>
        %l = affine.load %A[%i, %k] : memref<${N}x${N}x${T}>
        %u = affine.load %A[%k, %j] : memref<${N}x${N}x${T}>
        %product = arith.mulf %l, %u : ${T}
        %rest = arith.subf %a, %product : ${T}
        affine.store %rest, %A[%i, %j] : memref<${N}x${N}x${T}>
      }
      %a = affine.load %A[%i, %j] : memref<${N}x${N}x${T}>
      %pivot = affine.load %A[%j, %j] : memref<${N}x${N}x${T}>
      %quotient = arith.divf %a, %pivot : ${T}
      affine.store %quotient, %A[%i, %j] : memref<${N}x${N}x${T}>
    }
    affine.for %j = #id(%i) to %n {
      affine.for %k = 0 to #id(%i) {
        %a = affine.load %A[%i, %j] : memref<${N}x${N}x${T}>
        %l = affine.load %A[%i, %k] : memref<${N}x${N}x${T}>
        %u = affine.load %A[%k, %j] : memref<${N}x${N}x${T}>
        %product = arith.mulf %l, %u : ${T}
        %rest = arith.subf %a, %product : ${T}
        affine.store %rest, %A[%i, %j] : memref<${N}x${N}x${T}>
      }
    }
  }
  return
}
