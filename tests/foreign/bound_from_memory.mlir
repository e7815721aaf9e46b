// An affine loop ends where a number from memory says.
func.func @f(%arg0: memref<64xf64>, %arg1: memref<64xf64>, %arg2: memref<i64>) {
  %k = memref.load %arg2[] : memref<i64>
  %n = arith.index_cast %k : i64 to index
  affine.for %i = 0 to %n {
    %x = affine.load %arg0[%i] : memref<64xf64>
    affine.store %x, %arg1[%i] : memref<64xf64>
  }
  return
}
