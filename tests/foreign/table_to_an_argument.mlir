// A call that is not written out, for its bound comes from memory, reads tables and writes what it is
// given: no other rank has to see more of it than that.
memref.global "private" constant @fixed : memref<8xf64> = dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]>
memref.global "private" @loose : memref<8xf64> = dense<0.5>
func.func private @row(%out: memref<16x8xf64>, %i: index, %k: index) {
  %w = memref.get_global @fixed : memref<8xf64>
  %l = memref.get_global @loose : memref<8xf64>
  %v = memref.cast %l : memref<8xf64> to memref<?xf64>
  affine.for %j = 0 to %k {
    %x = affine.load %w[%j] : memref<8xf64>
    %y = affine.load %v[%j] : memref<?xf64>
    %z = arith.addf %x, %y : f64
    affine.store %z, %out[symbol(%i), %j] : memref<16x8xf64>
  }
  return
}
func.func @f(%arg0: memref<16xi64>, %arg1: memref<16x8xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %c16 step %c1 {
    %n = memref.load %arg0[%i] : memref<16xi64>
    %k = arith.index_cast %n : i64 to index
    func.call @row(%arg1, %i, %k) : (memref<16x8xf64>, index, index) -> ()
  }
  return
}
