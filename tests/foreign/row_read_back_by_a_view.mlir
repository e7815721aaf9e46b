// What a row stores it loads again, through a window of the array.
func.func @f(%arg0: memref<64x120xf64>, %arg1: memref<64x120xf64>, %arg2: memref<64x120xf64>) {
  affine.for %i = 0 to 64 {
    %s = memref.subview %arg0[%i, 0][1, 120][1, 1] : memref<64x120xf64> to memref<120xf64, strided<[1], offset: ?>>
    affine.for %j = 0 to 119 {
      %x = affine.load %arg2[%i, %j] : memref<64x120xf64>
      affine.store %x, %arg0[%i, %j] : memref<64x120xf64>
      %z = affine.load %s[%j] : memref<120xf64, strided<[1], offset: ?>>
      affine.store %z, %arg1[%i, %j] : memref<64x120xf64>
    }
  }
  return
}
