#id = affine_map<(d) -> (d)>
func.func @kernel_covariance(%float_n: ${T}, %data: memref<${N}x${M}x${T}>,
                             %cov: memref<${M}x${M}x${T}>, %mean: memref<${M}x${T}>) {
  ${extents}
  %zero = arith.constant 0.0 : ${T}
  %one = arith.constant 1.0 : ${T}
  affine.for %j = 0 to %m {
    affine.store %zero, %mean[%j] : memref<${M}x${T}>
    affine.for %i = 0 to %n {
      %s = affine.load %mean[%j] : memref<${M}x${T}>
      %d = affine.load %data[%i, %j] : memref<${N}x${M}x${T}>
      %sum = arith.addf %s, %d : ${T}
      affine.store %sum, %mean[%j] : memref<${M}x${T}>
    }
    %s = affine.load %mean[%j] : memref<${M}x${T}>
    %average = arith.divf %s, %float_n : ${T}
    affine.store %average, %mean[%j] : memref<${M}x${T}>
  }
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %m {
      %d = affine.load %data[%i, %j] : memref<${N}x${M}x${T}>
      %average = affine.load %mean[%j] : memref<${M}x${T}>
      %centred = arith.subf %d, %average : ${T}
      affine.store %centred, %data[%i, %j] : memref<${N}x${M}x${T}>
    }
  }
  affine.for %i = 0 to %m {
    affine.for %j = #id(%i) to %m {
      affine.store %zero, %cov[%i, %j] : memref<${M}x${M}x${T}>
      affine.for %k = 0 to %n {
        %c = affine.load %cov[%i, %j] : memref<${M}x${M}x${T}>
        %l = affine.load %data[%k, %i] : memref<${N}x${M}x${T}>
        %r = affine.load %data[%k, %j] : memref<${N}x${M}x${T}>
        %product = arith.mulf %l, %r : ${T}
        %sum = arith.addf %c, %product : ${T}
        affine.store %sum, %cov[%i, %j] : memref<${M}x${M}x${T}>
      }
      %c = affine.load %cov[%i, %j] : memref<${M}x${M}x${T}>
      %freedom = arith.subf %float_n, %one : ${T}
      %unbiased = arith.divf %c, %freedom : ${T}
      affine.store %unbiased, %cov[%i, %j] : memref<${M}x${M}x${T}>
      affine.store %unbiased, %cov[%j, %i] : memref<${M}x${M}x${T}>
    }
  }
  return
}
