// One sum over two loops, of which the inner one hands it on: its bound counts the terms of both.
func.func @total(%arg0: memref<16x100000xf32>, %arg1: memref<f32>) {
  affine.for %i = 0 to 16 {
    %o = affine.load %arg1[] : memref<f32>
    %s = affine.for %j = 0 to 100000 iter_args(%t = %o) -> f32 {
      %x = affine.load %arg0[%i, %j] : memref<16x100000xf32>
      %u = arith.addf %t, %x : f32
      affine.yield %u : f32
    }
    affine.store %s, %arg1[] : memref<f32>
  }
  return
}
