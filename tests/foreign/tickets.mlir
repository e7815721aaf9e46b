// What an atomic addition gives back is used: nobody may add in another order.
func.func @f(%arg0: memref<64xi64>, %arg1: memref<i64>) {
  %one = arith.constant 1 : i64
  affine.for %i = 0 to 64 {
    %r = memref.atomic_rmw addi %one, %arg1[] : (i64, memref<i64>) -> i64
    affine.store %r, %arg0[%i] : memref<64xi64>
  }
  return
}
