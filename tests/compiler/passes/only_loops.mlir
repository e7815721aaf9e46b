// RUN: -p only-loops

// CHECK-LABEL: func.func @leaves_loops(
// CHECK-SAME: %[[A:.*]]: memref<4xf64>, %[[X:.*]]: f64) {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 4 {
// CHECK-NEXT: affine.store %[[X]], %[[A]][%[[I]]] : memref<4xf64>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_loops(%A: memref<4xf64>, %x: f64) {
  affine.for %i = 0 to 4 {
    affine.store %x, %A[%i] : memref<4xf64>
  }
  return
}

// -----

func.func @tensors(%a: tensor<4xf64>) {
  // REFUSED: tensor.cast works on tensors, which could not be bufferized
  %b = tensor.cast %a : tensor<4xf64> to tensor<?xf64>
  return
}

// -----

func.func @no_loops(%A: memref<4xf64>, %x: f64) {
  // REFUSED: linalg.fill could not be lowered to loops
  linalg.fill ins(%x : f64) outs(%A : memref<4xf64>)
  return
}
