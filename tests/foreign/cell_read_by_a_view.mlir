// A cell is read through a view of it.
func.func @f(%arg0: memref<64x64xf64>, %arg1: memref<64x64xf64>, %arg2: memref<64x64xf64>, %arg3: memref<64x64xf64>, %arg4: memref<f64>) {
  %zero = arith.constant 0.0 : f64
  %v = memref.expand_shape %arg4 [] output_shape [1] : memref<f64> into memref<1xf64>
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %x = affine.load %arg1[%j, %i] : memref<64x64xf64>
      affine.store %x, %arg4[] : memref<f64>
      %y = affine.load %v[0] : memref<1xf64>
      affine.store %y, %arg3[%i, %j] : memref<64x64xf64>
      %s = affine.for %k = 0 to 64 iter_args(%o = %zero) -> (f64) {
        %a = affine.load %arg0[%i, %k] : memref<64x64xf64>
        %q = affine.load %arg1[%k, %j] : memref<64x64xf64>
        %m = arith.mulf %a, %q : f64
        %r = arith.addf %o, %m : f64
        affine.yield %r : f64
      }
      affine.store %s, %arg2[%i, %j] : memref<64x64xf64>
    }
  }
  return
}
