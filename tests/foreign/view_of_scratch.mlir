// Scratch memory that each iteration fills, read through a view made outside of the loop.
func.func @f(%arg0: memref<32x64xf64>, %arg1: memref<32x64xf64>) {
  %T = memref.alloc() : memref<64xf64>
  %v = memref.expand_shape %T [[0, 1]] output_shape [1, 64] : memref<64xf64> into memref<1x64xf64>
  affine.for %i = 0 to 32 {
    affine.for %j = 0 to 64 {
      %a = affine.load %arg0[%i, %j] : memref<32x64xf64>
      affine.store %a, %T[%j] : memref<64xf64>
    }
    affine.for %j = 0 to 64 {
      %m = affine.load %v[0, %j] : memref<1x64xf64>
      affine.store %m, %arg1[%i, 63 - %j] : memref<32x64xf64>
    }
  }
  return
}
