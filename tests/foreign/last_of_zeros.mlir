// `x <= old ? x : old` takes the later of two zeros, whatever their signs; so does the greatest.
func.func @extremes(%arg0: memref<96xf64>, %arg1: memref<f64>, %arg2: memref<f64>) {
  affine.for %i = 0 to 96 {
    %x = affine.load %arg0[%i] : memref<96xf64>
    %o = affine.load %arg1[] : memref<f64>
    %c = arith.cmpf ole, %x, %o : f64
    %m = arith.select %c, %x, %o : f64
    affine.store %m, %arg1[] : memref<f64>
  }
  affine.for %i = 0 to 96 {
    %x = affine.load %arg0[%i] : memref<96xf64>
    %o = affine.load %arg2[] : memref<f64>
    %c = arith.cmpf oge, %x, %o : f64
    %m = arith.select %c, %x, %o : f64
    affine.store %m, %arg2[] : memref<f64>
  }
  return
}
