// A short sum and a long one go to the same number: its bound is that of both.
func.func @total(%arg0: memref<32xf32>, %arg1: memref<1600000xf32>, %arg2: memref<f32>) {
  affine.for %i = 0 to 32 {
    %x = affine.load %arg0[%i] : memref<32xf32>
    %o = affine.load %arg2[] : memref<f32>
    %t = arith.addf %o, %x : f32
    affine.store %t, %arg2[] : memref<f32>
  }
  affine.for %i = 0 to 1600000 {
    %x = affine.load %arg1[%i] : memref<1600000xf32>
    %o = affine.load %arg2[] : memref<f32>
    %t = arith.addf %o, %x : f32
    affine.store %t, %arg2[] : memref<f32>
  }
  return
}
