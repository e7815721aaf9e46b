// A scratch array of each turn is read through a view of it.
func.func @f(%arg0: memref<4x64x64xf64>, %arg1: memref<64x64xf64>) {
  %zero = arith.constant 0.0 : f64
  affine.for %r = 0 to 4 {
    %c = memref.alloc() : memref<64xf64>
    %v = memref.expand_shape %c [[0, 1]] output_shape [1, 64] : memref<64xf64> into memref<1x64xf64>
    affine.for %q = 0 to 64 {
      affine.for %p = 0 to 64 {
        affine.store %zero, %c[%p] : memref<64xf64>
        affine.for %s = 0 to 64 {
          %o = affine.load %c[%p] : memref<64xf64>
          %a = affine.load %arg0[%r, %q, %s] : memref<4x64x64xf64>
          %b = affine.load %arg1[%s, %p] : memref<64x64xf64>
          %m = arith.mulf %a, %b : f64
          %t = arith.addf %o, %m : f64
          affine.store %t, %c[%p] : memref<64xf64>
        }
      }
      affine.for %p = 0 to 64 {
        %t = affine.load %v[0, %p] : memref<1x64xf64>
        affine.store %t, %arg0[%r, %q, %p] : memref<4x64x64xf64>
      }
    }
    memref.dealloc %c : memref<64xf64>
  }
  return
}
