#back = affine_map<(d)[n] -> (n - 1 - d)>
func.func @kernel_deriche(%alpha: ${T}, %imgIn: memref<${W}x${H}x${T}>,
                          %imgOut: memref<${W}x${H}x${T}>, %y1: memref<${W}x${H}x${T}>,
                          %y2: memref<${W}x${H}x${T}>) {
  ${extents}
  %zero = arith.constant 0.0 : ${T}
  %one = arith.constant 1.0 : ${T}
  %two = arith.constant 2.0 : ${T}
  %minus_two = arith.constant -2.0 : ${T}
  %minus_alpha = arith.negf %alpha : ${T}
  %e1 = math.exp %minus_alpha : ${T}
  %exponent = arith.mulf %minus_two, %alpha : ${T}
  %e2 = math.exp %exponent : ${T}
  %twice = arith.mulf %two, %alpha : ${T}
  %e3 = math.exp %twice : ${T}
  %gap = arith.subf %one, %e1 : ${T}
  %top = arith.mulf %gap, %gap : ${T}
  %slope = arith.mulf %twice, %e1 : ${T}
  %bottom1 = arith.addf %one, %slope : ${T}
  %bottom = arith.subf %bottom1, %e3 : ${T}
  %k = arith.divf %top, %bottom : ${T}
  %ke = arith.mulf %k, %e1 : ${T}
  %alpha_less = arith.subf %alpha, %one : ${T}
  %alpha_more = arith.addf %alpha, %one : ${T}
  %a2 = arith.mulf %ke, %alpha_less : ${T}
  %a3 = arith.mulf %ke, %alpha_more : ${T}
  %minus_k = arith.negf %k : ${T}
  %a4 = arith.mulf %minus_k, %e2 : ${T}
  %b1 = math.powf %two, %minus_alpha : ${T}
  %b2 = arith.negf %e2 : ${T}
  affine.for %i = 0 to %w {
    %end:3 = affine.for %j = 0 to %h iter_args(%xm1 = %zero, %ym1 = %zero, %ym2 = %zero)
        -> (${T}, ${T}, ${T}) {
      %x = affine.load %imgIn[%i, %j] : memref<${W}x${H}x${T}>
      %p1 = arith.mulf %k, %x : ${T}
      %p2 = arith.mulf %a2, %xm1 : ${T}
      %p3 = arith.mulf %b1, %ym1 : ${T}
      %p4 = arith.mulf %b2, %ym2 : ${T}
      %s1 = arith.addf %p1, %p2 : ${T}
      %s2 = arith.addf %s1, %p3 : ${T}
      %s3 = arith.addf %s2, %p4 : ${T}
      affine.store %s3, %y1[%i, %j] : memref<${W}x${H}x${T}>
      affine.yield %x, %s3, %ym1 : ${T}, ${T}, ${T}
    }
  }
  affine.for %i = 0 to %w {
    %end:4 = affine.for %step = 0 to %h
        iter_args(%xp1 = %zero, %xp2 = %zero, %yp1 = %zero, %yp2 = %zero)
        -> (${T}, ${T}, ${T}, ${T}) {
      %j = affine.apply #back(%step)[%h]
      %p1 = arith.mulf %a3, %xp1 : ${T}
      %p2 = arith.mulf %a4, %xp2 : ${T}
      %p3 = arith.mulf %b1, %yp1 : ${T}
      %p4 = arith.mulf %b2, %yp2 : ${T}
      %s1 = arith.addf %p1, %p2 : ${T}
      %s2 = arith.addf %s1, %p3 : ${T}
      %s3 = arith.addf %s2, %p4 : ${T}
      affine.store %s3, %y2[%i, %j] : memref<${W}x${H}x${T}>
      %x = affine.load %imgIn[%i, %j] : memref<${W}x${H}x${T}>
      affine.yield %x, %xp1, %s3, %yp1 : ${T}, ${T}, ${T}, ${T}
    }
  }
  affine.for %i = 0 to %w {
    affine.for %j = 0 to %h {
      %l = affine.load %y1[%i, %j] : memref<${W}x${H}x${T}>
      %r = affine.load %y2[%i, %j] : memref<${W}x${H}x${T}>
      %sum = arith.addf %l, %r : ${T}
      affine.store %sum, %imgOut[%i, %j] : memref<${W}x${H}x${T}>
    }
  }
  affine.for %j = 0 to %h {
    %end:3 = affine.for %i = 0 to %w iter_args(%tm1 = %zero, %ym1 = %zero, %ym2 = %zero)
        -> (${T}, ${T}, ${T}) {
      %x = affine.load %imgOut[%i, %j] : memref<${W}x${H}x${T}>
      %p1 = arith.mulf %k, %x : ${T}
      %p2 = arith.mulf %a2, %tm1 : ${T}
      %p3 = arith.mulf %b1, %ym1 : ${T}
      %p4 = arith.mulf %b2, %ym2 : ${T}
      %s1 = arith.addf %p1, %p2 : ${T}
      %s2 = arith.addf %s1, %p3 : ${T}
      %s3 = arith.addf %s2, %p4 : ${T}
      affine.store %s3, %y1[%i, %j] : memref<${W}x${H}x${T}>
      affine.yield %x, %s3, %ym1 : ${T}, ${T}, ${T}
    }
  }
  affine.for %j = 0 to %h {
    %end:4 = affine.for %step = 0 to %w
        iter_args(%tp1 = %zero, %tp2 = %zero, %yp1 = %zero, %yp2 = %zero)
        -> (${T}, ${T}, ${T}, ${T}) {
      %i = affine.apply #back(%step)[%w]
      %p1 = arith.mulf %a3, %tp1 : ${T}
      %p2 = arith.mulf %a4, %tp2 : ${T}
      %p3 = arith.mulf %b1, %yp1 : ${T}
      %p4 = arith.mulf %b2, %yp2 : ${T}
      %s1 = arith.addf %p1, %p2 : ${T}
      %s2 = arith.addf %s1, %p3 : ${T}
      %s3 = arith.addf %s2, %p4 : ${T}
      affine.store %s3, %y2[%i, %j] : memref<${W}x${H}x${T}>
      %x = affine.load %imgOut[%i, %j] : memref<${W}x${H}x${T}>
      affine.yield %x, %tp1, %s3, %yp1 : ${T}, ${T}, ${T}, ${T}
    }
  }
  affine.for %i = 0 to %w {
    affine.for %j = 0 to %h {
      %l = affine.load %y1[%i, %j] : memref<${W}x${H}x${T}>
      %r = affine.load %y2[%i, %j] : memref<${W}x${H}x${T}>
      %sum = arith.addf %l, %r : ${T}
      affine.store %sum, %imgOut[%i, %j] : memref<${W}x${H}x${T}>
    }
  }
  return
}
