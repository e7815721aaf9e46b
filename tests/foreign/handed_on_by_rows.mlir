// Every turn begins with what the one before left in memory of its own, and fills a row: the rows
// cannot be divided.
func.func @powers(%arg0: memref<8xf64>, %arg1: memref<32x8xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %r = scf.for %t = %c0 to %c32 step %c1 iter_args(%from = %arg0) -> (memref<8xf64>) {
    %to = memref.alloc() : memref<8xf64>
    affine.for %i = 0 to 8 {
      %x = memref.load %from[%i] : memref<8xf64>
      %y = arith.addf %x, %x : f64
      affine.store %y, %to[%i] : memref<8xf64>
    }
    affine.for %i = 0 to 8 {
      %x = affine.load %to[%i] : memref<8xf64>
      memref.store %x, %arg1[%t, %i] : memref<32x8xf64>
    }
    scf.yield %to : memref<8xf64>
  }
  return
}
