#id = affine_map<(d) -> (d)>
func.func @kernel_trisolv(%L: memref<${N}x${N}x${T}>, %x: memref<${N}x${T}>,
                          %b: memref<${N}x${T}>) {
  ${extents}
  affine.for %i = 0 to %n {
    %v = affine.load %b[%i] : memref<${N}x${T}>
    affine.store %v, %x[%i] : memref<${N}x${T}>
    affine.for %j = 0 to #id(%i) {
      %xi = affine.load %x[%i] : memref<${N}x${T}>
      %l = affine.load %L[%i, %j] : memref<${N}x${N}x${T}>
      %xj = affine.load %x[%j] : memref<${N}x${T}>
      %product = arith.mulf %l, %xj : ${T}
      %rest = arith.subf %xi, %product : ${T}
      affine.store %rest, %x[%i] : memref<${N}x${T}>
    }
    %xi = affine.load %x[%i] : memref<${N}x${T}>
    %pivot = affine.load %L[%i, %i] : memref<${N}x${N}x${T}>
    %quotient = arith.divf %xi, %pivot : ${T}
    affine.store %quotient, %x[%i] : memref<${N}x${T}>
  }
  return
}
