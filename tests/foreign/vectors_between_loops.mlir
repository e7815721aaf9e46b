// A vector is loaded and stored between the loops, where data says so.
func.func @f(%arg0: memref<64xf64>, %arg1: memref<64xf64>, %arg2: memref<i64>) {
  %z = arith.constant 0 : i64
  %c3 = arith.constant 3 : index
  %c40 = arith.constant 40 : index
  %kk = memref.load %arg2[] : memref<i64>
  %t = arith.cmpi sgt, %kk, %z : i64
  affine.for %i = 0 to 64 {
    %u = affine.load %arg0[%i] : memref<64xf64>
    %v = arith.addf %u, %u : f64
    affine.store %v, %arg0[%i] : memref<64xf64>
  }
  scf.if %t {
    %r = vector.load %arg0[%c40] : memref<64xf64>, vector<4xf64>
    vector.store %r, %arg1[%c3] : memref<64xf64>, vector<4xf64>
    affine.for %i = 0 to 64 {
      %u = affine.load %arg0[%i] : memref<64xf64>
      affine.store %u, %arg0[%i] : memref<64xf64>
    }
  }
  return
}
