// Memory that goes through an affine loop's values is handed on by the loop around.
func.func @f(%arg0: memref<8xf64>, %arg1: memref<8xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %last = scf.for %t = %c0 to %c5 step %c1 iter_args(%from = %arg0) -> (memref<8xf64>) {
    %p = memref.alloc() : memref<8xf64>
    %q = memref.alloc() : memref<8xf64>
    affine.for %i = 0 to 8 {
      %x = memref.load %from[%i] : memref<8xf64>
      %m = affine.apply affine_map<(d0) -> (7 - d0)>(%i)
      %y = memref.load %from[%m] : memref<8xf64>
      affine.store %x, %p[%i] : memref<8xf64>
      affine.store %y, %q[%i] : memref<8xf64>
    }
    %r:2 = affine.for %k = 0 to 3 iter_args(%x = %p, %y = %q) -> (memref<8xf64>, memref<8xf64>) {
      affine.yield %y, %x : memref<8xf64>, memref<8xf64>
    }
    affine.for %i = 0 to 8 {
      %x = memref.load %r#0[%i] : memref<8xf64>
      affine.store %x, %arg1[%i] : memref<8xf64>
    }
    scf.yield %r#0 : memref<8xf64>
  }
  return
}
