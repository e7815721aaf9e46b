#less1 = affine_map<()[n] -> (n - 1)>
func.func @kernel_heat_3d(%tsteps: index, %A: memref<${N}x${N}x${N}x${T}>,
                          %B: memref<${N}x${N}x${N}x${T}>) {
  ${extents}
  %eighth = arith.constant 0.125 : ${T}
  %two = arith.constant 2.0 : ${T}
  affine.for %t = 0 to %tsteps {
    affine.for %i = 1 to #less1()[%n] {
      affine.for %j = 1 to #less1()[%n] {
        affine.for %k = 1 to #less1()[%n] {
          %c = affine.load %A[%i, %j, %k] : memref<${N}x${N}x${N}x${T}>
          %twice = arith.mulf %two, %c : ${T}
          %i_up = affine.load %A[%i + 1, %j, %k] : memref<${N}x${N}x${N}x${T}>
          %i_down = affine.load %A[%i - 1, %j, %k] : memref<${N}x${N}x${N}x${T}>
          %i_1 = arith.subf %i_up, %twice : ${T}
          %i_2 = arith.addf %i_1, %i_down : ${T}
          %i_flow = arith.mulf %eighth, %i_2 : ${T}
          %j_up = affine.load %A[%i, %j + 1, %k] : memref<${N}x${N}x${N}x${T}>
          %j_down = affine.load %A[%i, %j - 1, %k] : memref<${N}x${N}x${N}x${T}>
          %j_1 = arith.subf %j_up, %twice : ${T}
          %j_2 = arith.addf %j_1, %j_down : ${T}
          %j_flow = arith.mulf %eighth, %j_2 : ${T}
          %k_up = affine.load %A[%i, %j, %k + 1] : memref<${N}x${N}x${N}x${T}>
          %k_down = affine.load %A[%i, %j, %k - 1] : memref<${N}x${N}x${N}x${T}>
          %k_1 = arith.subf %k_up, %twice : ${T}
          %k_2 = arith.addf %k_1, %k_down : ${T}
          %k_flow = arith.mulf %eighth, %k_2 : ${T}
          %s1 = arith.addf %i_flow, %j_flow : ${T}
          %s2 = arith.addf %s1, %k_flow : ${T}
          %s3 = arith.addf %s2, %c : ${T}
          affine.store %s3, %B[%i, %j, %k] : memref<${N}x${N}x${N}x${T}>
        }
      }
    }
    affine.for %i = 1 to #less1()[%n] {
      affine.for %j = 1 to #less1()[%n] {
        affine.for %k = 1 to #less1()[%n] {
          %c = affine.load %B[%i, %j, %k] : memref<${N}x${N}x${N}x${T}>
          %twice = arith.mulf %two, %c : ${T}
          %i_up = affine.load %B[%i + 1, %j, %k] : memref<${N}x${N}x${N}x${T}>
          %i_down = affine.load %B[%i - 1, %j, %k] : memref<${N}x${N}x${N}x${T}>
          %i_1 = arith.subf %i_up, %twice : ${T}
          %i_2 = arith.addf %i_1, %i_down : ${T}
          %i_flow = arith.mulf %eighth, %i_2 : ${T}
          %j_up = affine.load %B[%i, %j + 1, %k] : memref<${N}x${N}x${N}x${T}>
          %j_down = affine.load %B[%i, %j - 1, %k] : memref<${N}x${N}x${N}x${T}>
          %j_1 = arith.subf %j_up, %twice : ${T}
          %j_2 = arith.addf %j_1, %j_down : ${T}
          %j_flow = arith.mulf %eighth, %j_2 : ${T}
          %k_up = affine.load %B[%i, %j, %k + 1] : memref<${N}x${N}x${N}x${T}>
          %k_down = affine.load %B[%i, %j, %k - 1] : memref<${N}x${N}x${N}x${T}>
          %k_1 = arith.subf %k_up, %twice : ${T}
          %k_2 = arith.addf %k_1, %k_down : ${T}
          %k_flow = arith.mulf %eighth, %k_2 : ${T}
          %s1 = arith.addf %i_flow, %j_flow : ${T}
          %s2 = arith.addf %s1, %k_flow : ${T}
          %s3 = arith.addf %s2, %c : ${T}
          affine.store %s3, %A[%i, %j, %k] : memref<${N}x${N}x${N}x${T}>
        }
      }
    }
  }
  return
}
