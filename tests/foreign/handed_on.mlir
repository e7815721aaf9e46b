// Memory of a known size that a loop allocates and hands on: the next turn reads it while it writes
// its own.
func.func @mirrored(%arg0: memref<8xf64>, %arg1: memref<8xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %last = scf.for %t = %c0 to %c5 step %c1 iter_args(%from = %arg0) -> (memref<8xf64>) {
    %to = memref.alloc() : memref<8xf64>
    affine.for %i = 0 to 8 {
      %m = affine.apply affine_map<(d0) -> (7 - d0)>(%i)
      %x = memref.load %from[%i] : memref<8xf64>
      %y = memref.load %from[%m] : memref<8xf64>
      %s = arith.addf %x, %y : f64
      affine.store %s, %to[%i] : memref<8xf64>
    }
    affine.for %i = 0 to 8 {
      %x = affine.load %to[%i] : memref<8xf64>
      affine.store %x, %arg1[%i] : memref<8xf64>
    }
    scf.yield %to : memref<8xf64>
  }
  return
}
