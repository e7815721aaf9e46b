func.func @kernel_floyd_warshall(%path: memref<${N}x${N}x${T}>) {
  ${extents}
  affine.for %k = 0 to %n {
    affine.for %i = 0 to %n {
      affine.for %j = 0 to %n {
        %direct = affine.load %path[%i, %j] : memref<${N}x${N}x${T}>
        %to = affine.load %path[%i, %k] : memref<${N}x${N}x${T}>
        %from = affine.load %path[%k, %j] : memref<${N}x${N}x${T}>
        %through = arith.add${k} %to, %from : ${T}
        %shorter = arith.${min} %direct, %through : ${T}
        affine.store %shorter, %path[%i, %j] : memref<${N}x${N}x${T}>
      }
    }
  }
  return
}
