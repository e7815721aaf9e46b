// RUN: -p check-accesses

// CHECK-LABEL: func.func @inside
func.func @inside(%A: memref<10xf64>, %n: index) {
  %zero = arith.constant 0.0 : f64
  affine.for %i = 0 to %n {
    affine.store %zero, %A[%i] : memref<10xf64>
  }
  return
}

// -----

func.func @outside(%A: memref<10xf64>) {
  %zero = arith.constant 0.0 : f64
  affine.for %i = 0 to 10 {
    // REFUSED: reaches index 10 of dimension 0, which has size 10
    affine.store %zero, %A[%i + 1] : memref<10xf64>
  }
  return
}

// -----

// Whether it is reached hangs on data: nothing is certain.

// CHECK-LABEL: func.func @perhaps
func.func @perhaps(%A: memref<10xf64>, %f: memref<i1>) {
  %zero = arith.constant 0.0 : f64
  %c = memref.load %f[] : memref<i1>
  scf.if %c {
    affine.for %i = 0 to 11 {
      affine.store %zero, %A[%i] : memref<10xf64>
    }
  }
  return
}
