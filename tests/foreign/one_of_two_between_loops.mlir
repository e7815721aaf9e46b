// Between the loops an element is loaded from one of two arrays.
func.func @f(%arg0: memref<64xf64>, %arg1: memref<64xf64>, %arg2: memref<i64>) {
  %z = arith.constant 0 : i64
  %c40 = arith.constant 40 : index
  %kk = memref.load %arg2[] : memref<i64>
  %t = arith.cmpi sgt, %kk, %z : i64
  %m = arith.select %t, %arg0, %arg1 : memref<64xf64>
  affine.for %i = 0 to 64 {
    %u = affine.load %arg0[%i] : memref<64xf64>
    %v = arith.addf %u, %u : f64
    affine.store %v, %arg0[%i] : memref<64xf64>
  }
  scf.if %t {
    %x = memref.load %m[%c40] : memref<64xf64>
    affine.for %i = 0 to 64 {
      affine.store %x, %arg1[%i] : memref<64xf64>
    }
  }
  return
}
