func.func @kernel_prefix_sum(%x: memref<${N}x${T}>, %sums: memref<${N}x${T}>) {
  ${extents}
  %first = affine.load %x[0] : memref<${N}x${T}>
  affine.store %first, %sums[0] : memref<${N}x${T}>
  affine.for %i = 1 to %n {
    %before = affine.load %sums[%i - 1] : memref<${N}x${T}>
    %next = affine.load %x[%i] : memref<${N}x${T}>
    %sum = arith.add${k} %before, %next : ${T}
    affine.store %sum, %sums[%i] : memref<${N}x${T}>
  }
  return
}
