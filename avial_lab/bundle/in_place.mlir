// For arrays that are on a GPU before and after.
func.func @in_place(%x: memref<1048576xf32>, %y: memref<1048576xf32>) {
  affine.for %i = 0 to 1048576 {
    %two = arith.constant 2.0 : f32
    %p = affine.load %x[%i] : memref<1048576xf32>
    %q = affine.load %y[%i] : memref<1048576xf32>
    %r = arith.mulf %two, %p : f32
    %s = arith.addf %r, %q : f32
    affine.store %s, %y[%i] : memref<1048576xf32>
  }
  return
}
