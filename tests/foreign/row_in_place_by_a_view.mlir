// A row is written in place, and read through a view of the whole array.
func.func @f(%arg0: memref<16x120xf64>) {
  %one = arith.constant 1.0 : f64
  %v = memref.collapse_shape %arg0 [[0, 1]] : memref<16x120xf64> into memref<1920xf64>
  affine.for %i = 0 to 16 {
    affine.for %j = 0 to 119 {
      %x = affine.load %v[%i * 120 + %j] : memref<1920xf64>
      %y = arith.addf %x, %one : f64
      affine.store %y, %arg0[%i, %j] : memref<16x120xf64>
    }
  }
  return
}
