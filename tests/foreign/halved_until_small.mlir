// The body of a do-while stands before its condition: who is through must not run it again.
func.func @halve(%arg0: memref<64xf64>, %arg1: memref<64xi64>) {
  %one = arith.constant 1.0 : f64
  %half = arith.constant 0.5 : f64
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  affine.for %j = 0 to 64 {
    %k = scf.while (%c = %c0) : (i64) -> i64 {
      %x = affine.load %arg0[%j] : memref<64xf64>
      %y = arith.mulf %x, %half : f64
      affine.store %y, %arg0[%j] : memref<64xf64>
      %d = arith.addi %c, %c1 : i64
      %more = arith.cmpf ogt, %y, %one : f64
      scf.condition(%more) %d : i64
    } do {
    ^bb0(%d: i64):
      scf.yield %d : i64
    }
    affine.store %k, %arg1[%j] : memref<64xi64>
  }
  return
}
