func.func @kernel_n_body(%tsteps: index, %dt: ${T}, %softening: ${T}, %mass: memref<${N}x${T}>,
                         %position: memref<${N}x3x${T}>, %velocity: memref<${N}x3x${T}>) {
  ${extents}
  %zero = arith.constant 0.0 : ${T}
  affine.for %t = 0 to %tsteps {
    affine.for %i = 0 to %n {
      %xi = affine.load %position[%i, 0] : memref<${N}x3x${T}>
      %yi = affine.load %position[%i, 1] : memref<${N}x3x${T}>
      %zi = affine.load %position[%i, 2] : memref<${N}x3x${T}>
      %pull:3 = affine.for %j = 0 to %n
          iter_args(%ax = %zero, %ay = %zero, %az = %zero) -> (${T}, ${T}, ${T}) {
        %xj = affine.load %position[%j, 0] : memref<${N}x3x${T}>
        %yj = affine.load %position[%j, 1] : memref<${N}x3x${T}>
        %zj = affine.load %position[%j, 2] : memref<${N}x3x${T}>
        %dx = arith.subf %xj, %xi : ${T}
        %dy = arith.subf %yj, %yi : ${T}
        %dz = arith.subf %zj, %zi : ${T}
        %dx2 = arith.mulf %dx, %dx : ${T}
        %dy2 = arith.mulf %dy, %dy : ${T}
        %dz2 = arith.mulf %dz, %dz : ${T}
        %s1 = arith.addf %dx2, %dy2 : ${T}
        %s2 = arith.addf %s1, %dz2 : ${T}
        %r2 = arith.addf %s2, %softening : ${T}
        %r = math.sqrt %r2 : ${T}
        %r3 = arith.mulf %r2, %r : ${T}
        %m = affine.load %mass[%j] : memref<${N}x${T}>
        %strength = arith.divf %m, %r3 : ${T}
        %fx = arith.mulf %strength, %dx : ${T}
        %fy = arith.mulf %strength, %dy : ${T}
        %fz = arith.mulf %strength, %dz : ${T}
        %ax_next = arith.addf %ax, %fx : ${T}
        %ay_next = arith.addf %ay, %fy : ${T}
        %az_next = arith.addf %az, %fz : ${T}
        affine.yield %ax_next, %ay_next, %az_next : ${T}, ${T}, ${T}
      }
      %vx = affine.load %velocity[%i, 0] : memref<${N}x3x${T}>
      %vy = affine.load %velocity[%i, 1] : memref<${N}x3x${T}>
      %vz = affine.load %velocity[%i, 2] : memref<${N}x3x${T}>
      %dvx = arith.mulf %dt, %pull#0 : ${T}
      %dvy = arith.mulf %dt, %pull#1 : ${T}
      %dvz = arith.mulf %dt, %pull#2 : ${T}
      %vx_new = arith.addf %vx, %dvx : ${T}
      %vy_new = arith.addf %vy, %dvy : ${T}
      %vz_new = arith.addf %vz, %dvz : ${T}
      affine.store %vx_new, %velocity[%i, 0] : memref<${N}x3x${T}>
      affine.store %vy_new, %velocity[%i, 1] : memref<${N}x3x${T}>
      affine.store %vz_new, %velocity[%i, 2] : memref<${N}x3x${T}>
    }
    affine.for %i = 0 to %n {
      affine.for %c = 0 to 3 {
        %x = affine.load %position[%i, %c] : memref<${N}x3x${T}>
        %v = affine.load %velocity[%i, %c] : memref<${N}x3x${T}>
        %way = arith.mulf %dt, %v : ${T}
        %new = arith.addf %x, %way : ${T}
        affine.store %new, %position[%i, %c] : memref<${N}x3x${T}>
      }
    }
  }
  return
}
