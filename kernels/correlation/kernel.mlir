#past = affine_map<(d) -> (d + 1)>
#less1 = affine_map<()[n] -> (n - 1)>
func.func @kernel_correlation(%float_n: ${T}, %data: memref<${N}x${M}x${T}>,
                              %corr: memref<${M}x${M}x${T}>, %mean: memref<${M}x${T}>,
                              %stddev: memref<${M}x${T}>) {
  ${extents}
  %zero = arith.constant 0.0 : ${T}
  %one = arith.constant 1.0 : ${T}
  %eps = arith.constant 0.1 : ${T}
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
  affine.for %j = 0 to %m {
    affine.store %zero, %stddev[%j] : memref<${M}x${T}>
    affine.for %i = 0 to %n {
      %s = affine.load %stddev[%j] : memref<${M}x${T}>
      %d = affine.load %data[%i, %j] : memref<${N}x${M}x${T}>
      %average = affine.load %mean[%j] : memref<${M}x${T}>
      %off = arith.subf %d, %average : ${T}
      %square = arith.mulf %off, %off : ${T}
      %sum = arith.addf %s, %square : ${T}
      affine.store %sum, %stddev[%j] : memref<${M}x${T}>
    }
    %s = affine.load %stddev[%j] : memref<${M}x${T}>
    %variance = arith.divf %s, %float_n : ${T}
    %deviation = math.sqrt %variance : ${T}
    %tiny = arith.cmpf ole, %deviation, %eps : ${T}
    %safe = arith.select %tiny, %one, %deviation : ${T}
    affine.store %safe, %stddev[%j] : memref<${M}x${T}>
  }
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %m {
      %d = affine.load %data[%i, %j] : memref<${N}x${M}x${T}>
      %average = affine.load %mean[%j] : memref<${M}x${T}>
      %centred = arith.subf %d, %average : ${T}
      %root = math.sqrt %float_n : ${T}
      %deviation = affine.load %stddev[%j] : memref<${M}x${T}>
      %scale = arith.mulf %root, %deviation : ${T}
      %reduced = arith.divf %centred, %scale : ${T}
      affine.store %reduced, %data[%i, %j] : memref<${N}x${M}x${T}>
    }
  }
  affine.for %i = 0 to #less1()[%m] {
    affine.store %one, %corr[%i, %i] : memref<${M}x${M}x${T}>
    affine.for %j = #past(%i) to %m {
      affine.store %zero, %corr[%i, %j] : memref<${M}x${M}x${T}>
      affine.for %k = 0 to %n {
        %c = affine.load %corr[%i, %j] : memref<${M}x${M}x${T}>
        %l = affine.load %data[%k, %i] : memref<${N}x${M}x${T}>
        %r = affine.load %data[%k, %j] : memref<${N}x${M}x${T}>
        %product = arith.mulf %l, %r : ${T}
        %sum = arith.addf %c, %product : ${T}
        affine.store %sum, %corr[%i, %j] : memref<${M}x${M}x${T}>
      }
      %c = affine.load %corr[%i, %j] : memref<${M}x${M}x${T}>
      affine.store %c, %corr[%j, %i] : memref<${M}x${M}x${T}>
    }
  }
  affine.store %one, %corr[symbol(%m) - 1, symbol(%m) - 1] : memref<${M}x${M}x${T}>
  return
}
