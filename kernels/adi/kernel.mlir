#less1 = affine_map<()[n] -> (n - 1)>
#back = affine_map<(d)[n] -> (n - 1 - d)>
func.func @kernel_adi(%tsteps: index, %u: memref<${N}x${N}x${T}>, %v: memref<${N}x${N}x${T}>,
                      %p: memref<${N}x${N}x${T}>, %q: memref<${N}x${N}x${T}>) {
  ${extents}
  %zero = arith.constant 0.0 : ${T}
  %one = arith.constant 1.0 : ${T}
  %two = arith.constant 2.0 : ${T}
  %n_i64 = arith.index_cast %n : index to i64
  %tsteps_i64 = arith.index_cast %tsteps : index to i64
  %n_float = arith.sitofp %n_i64 : i64 to ${T}
  %tsteps_float = arith.sitofp %tsteps_i64 : i64 to ${T}
  %dx = arith.divf %one, %n_float : ${T}
  %dt = arith.divf %one, %tsteps_float : ${T}
  %dx2 = arith.mulf %dx, %dx : ${T}
  %two_dt = arith.mulf %two, %dt : ${T}
  %mul1 = arith.divf %two_dt, %dx2 : ${T}
  %mul2 = arith.divf %dt, %dx2 : ${T}
  %minus1 = arith.negf %mul1 : ${T}
  %minus2 = arith.negf %mul2 : ${T}
  %a = arith.divf %minus1, %two : ${T}
  %b = arith.addf %one, %mul1 : ${T}
  %d = arith.divf %minus2, %two : ${T}
  %e = arith.addf %one, %mul2 : ${T}
  %minus_a = arith.negf %a : ${T}
  %minus_d = arith.negf %d : ${T}
  %two_a = arith.mulf %two, %a : ${T}
  %two_d = arith.mulf %two, %d : ${T}
  %middle_a = arith.addf %one, %two_a : ${T}
  %middle_d = arith.addf %one, %two_d : ${T}
  affine.for %t = 0 to %tsteps {
    affine.for %i = 1 to #less1()[%n] {
      affine.store %one, %v[0, %i] : memref<${N}x${N}x${T}>
      affine.store %zero, %p[%i, 0] : memref<${N}x${N}x${T}>
      %v0 = affine.load %v[0, %i] : memref<${N}x${N}x${T}>
      affine.store %v0, %q[%i, 0] : memref<${N}x${N}x${T}>
      affine.for %j = 1 to #less1()[%n] {
        %p0 = affine.load %p[%i, %j - 1] : memref<${N}x${N}x${T}>
        %q0 = affine.load %q[%i, %j - 1] : memref<${N}x${N}x${T}>
        %ap = arith.mulf %a, %p0 : ${T}
        %pivot = arith.addf %ap, %b : ${T}
        %p1 = arith.divf %minus_a, %pivot : ${T}
        affine.store %p1, %p[%i, %j] : memref<${N}x${N}x${T}>
        %u0 = affine.load %u[%j, %i - 1] : memref<${N}x${N}x${T}>
        %u1 = affine.load %u[%j, %i] : memref<${N}x${N}x${T}>
        %u2 = affine.load %u[%j, %i + 1] : memref<${N}x${N}x${T}>
        %w0 = arith.mulf %minus_d, %u0 : ${T}
        %w1 = arith.mulf %middle_d, %u1 : ${T}
        %w2 = arith.mulf %d, %u2 : ${T}
        %w3 = arith.mulf %a, %q0 : ${T}
        %s1 = arith.addf %w0, %w1 : ${T}
        %s2 = arith.subf %s1, %w2 : ${T}
        %s3 = arith.subf %s2, %w3 : ${T}
        %q1 = arith.divf %s3, %pivot : ${T}
        affine.store %q1, %q[%i, %j] : memref<${N}x${N}x${T}>
      }
      affine.store %one, %v[symbol(%n) - 1, %i] : memref<${N}x${N}x${T}>
      affine.for %step = 1 to #less1()[%n] {
        %j = affine.apply #back(%step)[%n]
        %p1 = affine.load %p[%i, %j] : memref<${N}x${N}x${T}>
        %next = affine.load %v[%j + 1, %i] : memref<${N}x${N}x${T}>
        %q1 = affine.load %q[%i, %j] : memref<${N}x${N}x${T}>
        %product = arith.mulf %p1, %next : ${T}
        %sum = arith.addf %product, %q1 : ${T}
        affine.store %sum, %v[%j, %i] : memref<${N}x${N}x${T}>
      }
    }
    affine.for %i = 1 to #less1()[%n] {
      affine.store %one, %u[%i, 0] : memref<${N}x${N}x${T}>
      affine.store %zero, %p[%i, 0] : memref<${N}x${N}x${T}>
      %u_first = affine.load %u[%i, 0] : memref<${N}x${N}x${T}>
      affine.store %u_first, %q[%i, 0] : memref<${N}x${N}x${T}>
      affine.for %j = 1 to #less1()[%n] {
        %p0 = affine.load %p[%i, %j - 1] : memref<${N}x${N}x${T}>
        %q0 = affine.load %q[%i, %j - 1] : memref<${N}x${N}x${T}>
        %dp = arith.mulf %d, %p0 : ${T}
        %pivot = arith.addf %dp, %e : ${T}
        %p1 = arith.divf %minus_d, %pivot : ${T}
        affine.store %p1, %p[%i, %j] : memref<${N}x${N}x${T}>
        %v0 = affine.load %v[%i - 1, %j] : memref<${N}x${N}x${T}>
        %v1 = affine.load %v[%i, %j] : memref<${N}x${N}x${T}>
        %v2 = affine.load %v[%i + 1, %j] : memref<${N}x${N}x${T}>
        %w0 = arith.mulf %minus_a, %v0 : ${T}
        %w1 = arith.mulf %middle_a, %v1 : ${T}
        %w2 = arith.mulf %a, %v2 : ${T}
        %w3 = arith.mulf %d, %q0 : ${T}
        %s1 = arith.addf %w0, %w1 : ${T}
        %s2 = arith.subf %s1, %w2 : ${T}
        %s3 = arith.subf %s2, %w3 : ${T}
        %q1 = arith.divf %s3, %pivot : ${T}
        affine.store %q1, %q[%i, %j] : memref<${N}x${N}x${T}>
      }
      affine.store %one, %u[%i, symbol(%n) - 1] : memref<${N}x${N}x${T}>
      affine.for %step = 1 to #less1()[%n] {
        %j = affine.apply #back(%step)[%n]
        %p1 = affine.load %p[%i, %j] : memref<${N}x${N}x${T}>
        %next = affine.load %u[%i, %j + 1] : memref<${N}x${N}x${T}>
        %q1 = affine.load %q[%i, %j] : memref<${N}x${N}x${T}>
        %product = arith.mulf %p1, %next : ${T}
        %sum = arith.addf %product, %q1 : ${T}
        affine.store %sum, %u[%i, %j] : memref<${N}x${N}x${T}>
      }
    }
  }
  return
}
