// A call that is given no memory changes a global, which the program reads behind it.
memref.global "private" @count : memref<1xf64> = dense<0.0>
func.func private @bump() {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f64
  %g = memref.get_global @count : memref<1xf64>
  %v = memref.load %g[%c0] : memref<1xf64>
  %w = arith.addf %v, %one : f64
  memref.store %w, %g[%c0] : memref<1xf64>
  return
}
func.func @f(%arg0: memref<64xf64>, %arg1: memref<64xf64>) {
  %c0 = arith.constant 0 : index
  %g = memref.get_global @count : memref<1xf64>
  func.call @bump() : () -> ()
  %v = memref.load %g[%c0] : memref<1xf64>
  affine.for %i = 0 to 64 {
    affine.store %v, %arg0[%i] : memref<64xf64>
  }
  affine.for %i = 0 to 64 {
    func.call @bump() : () -> ()
    %w = memref.load %g[%c0] : memref<1xf64>
    affine.store %w, %arg1[%i] : memref<64xf64>
  }
  return
}
