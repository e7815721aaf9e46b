// One sum over two loops: its bound counts the terms of both, also where only the outer one is
// divided.
func.func @total(%arg0: memref<16x100000xf32>, %arg1: memref<f32>) {
  affine.for %i = 0 to 16 {
    affine.for %j = 0 to 100000 {
      %x = affine.load %arg0[%i, %j] : memref<16x100000xf32>
      %o = affine.load %arg1[] : memref<f32>
      %t = arith.addf %o, %x : f32
      affine.store %t, %arg1[] : memref<f32>
    }
  }
  return
}
