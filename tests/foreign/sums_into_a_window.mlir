// Sums of rows are added to a window that begins behind the array's first element.
func.func @f(%arg0: memref<200x600xf64>, %arg1: memref<600xf64>, %arg2: memref<607xf64>) {
  %z = arith.constant 0.0 : f64
  %v = memref.subview %arg2[7][600][1] : memref<607xf64> to memref<600xf64, strided<[1], offset: 7>>
  affine.for %i = 0 to 200 {
    %s = affine.for %j = 0 to 600 iter_args(%o = %z) -> (f64) {
      %a = affine.load %arg0[%i, %j] : memref<200x600xf64>
      %b = affine.load %arg1[%j] : memref<600xf64>
      %m = arith.mulf %a, %b : f64
      %r = arith.addf %o, %m : f64
      affine.yield %r : f64
    }
    affine.for %j = 0 to 600 {
      %a = affine.load %arg0[%i, %j] : memref<200x600xf64>
      %o = affine.load %v[%j] : memref<600xf64, strided<[1], offset: 7>>
      %m = arith.mulf %a, %s : f64
      %r = arith.addf %o, %m : f64
      affine.store %r, %v[%j] : memref<600xf64, strided<[1], offset: 7>>
    }
  }
  return
}
