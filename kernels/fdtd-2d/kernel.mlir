#less1 = affine_map<()[n] -> (n - 1)>
func.func @kernel_fdtd_2d(%ex: memref<${NX}x${NY}x${T}>, %ey: memref<${NX}x${NY}x${T}>,
                          %hz: memref<${NX}x${NY}x${T}>, %fict: memref<${TMAX}x${T}>) {
  ${extents}
  %half = arith.constant 0.5 : ${T}
  %c07 = arith.constant 0.7 : ${T}
  affine.for %t = 0 to %tmax {
    affine.for %j = 0 to %ny {
      %source = affine.load %fict[%t] : memref<${TMAX}x${T}>
      affine.store %source, %ey[0, %j] : memref<${NX}x${NY}x${T}>
    }
    affine.for %i = 1 to %nx {
      affine.for %j = 0 to %ny {
        %e = affine.load %ey[%i, %j] : memref<${NX}x${NY}x${T}>
        %h = affine.load %hz[%i, %j] : memref<${NX}x${NY}x${T}>
        %up = affine.load %hz[%i - 1, %j] : memref<${NX}x${NY}x${T}>
        %slope = arith.subf %h, %up : ${T}
        %change = arith.mulf %half, %slope : ${T}
        %new = arith.subf %e, %change : ${T}
        affine.store %new, %ey[%i, %j] : memref<${NX}x${NY}x${T}>
      }
    }
    affine.for %i = 0 to %nx {
      affine.for %j = 1 to %ny {
        %e = affine.load %ex[%i, %j] : memref<${NX}x${NY}x${T}>
        %h = affine.load %hz[%i, %j] : memref<${NX}x${NY}x${T}>
        %left = affine.load %hz[%i, %j - 1] : memref<${NX}x${NY}x${T}>
        %slope = arith.subf %h, %left : ${T}
        %change = arith.mulf %half, %slope : ${T}
        %new = arith.subf %e, %change : ${T}
        affine.store %new, %ex[%i, %j] : memref<${NX}x${NY}x${T}>
      }
    }
    affine.for %i = 0 to #less1()[%nx] {
      affine.for %j = 0 to #less1()[%ny] {
        %h = affine.load %hz[%i, %j] : memref<${NX}x${NY}x${T}>
        %right = affine.load %ex[%i, %j + 1] : memref<${NX}x${NY}x${T}>
        %here_x = affine.load %ex[%i, %j] : memref<${NX}x${NY}x${T}>
        %down = affine.load %ey[%i + 1, %j] : memref<${NX}x${NY}x${T}>
        %here_y = affine.load %ey[%i, %j] : memref<${NX}x${NY}x${T}>
        %s1 = arith.subf %right, %here_x : ${T}
        %s2 = arith.addf %s1, %down : ${T}
        %curl = arith.subf %s2, %here_y : ${T}
        %change = arith.mulf %c07, %curl : ${T}
        %new = arith.subf %h, %change : ${T}
        affine.store %new, %hz[%i, %j] : memref<${NX}x${NY}x${T}>
      }
    }
  }
  return
}
