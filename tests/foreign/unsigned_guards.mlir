// Comparisons of `index` without a sign: i - 40 is large for i below 40, and one comparison asks for
// both ends of a range.
func.func @guarded(%arg0: memref<64xf64>, %arg1: memref<64xf64>) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c40 = arith.constant 40 : index
  %c64 = arith.constant 64 : index
  %c1000 = arith.constant 1000 : index
  scf.for %i = %c1 to %c64 step %c1 {
    %k = index.sub %i, %c40
    %below = index.cmp ugt(%k, %c1000)
    scf.if %below {
      %p = arith.subi %i, %c1 : index
      %x = memref.load %arg0[%p] : memref<64xf64>
      %y = arith.addf %x, %x : f64
      memref.store %y, %arg0[%i] : memref<64xf64>
    }
  }
  scf.for %i = %c1 to %c64 step %c1 {
    %k = index.sub %i, %c8
    %within = index.cmp ult(%k, %c40)
    scf.if %within {
      %x = memref.load %arg0[%k] : memref<64xf64>
      memref.store %x, %arg1[%i] : memref<64xf64>
    }
  }
  return
}
