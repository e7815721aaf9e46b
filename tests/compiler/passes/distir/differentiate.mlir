// RUN: -p differentiate{of=arg1}

// The gradient of a weight is a contraction over the batch, of what is needed alone.

// CHECK-LABEL: func.func @loss(
// CHECK-SAME: %[[X:.*]]: tensor<4x3xf64>, %{{.*}}: tensor<3x2xf64>) -> (tensor<f64>, tensor<3x2xf64>)
// CHECK: %[[L:.*]] = linalg.generic {{.*}} iterator_types = ["reduction", "reduction"]
// CHECK: arith.constant 1.000000e+00 : f64
// CHECK: %[[G:.*]] = linalg.generic {{.*}} iterator_types = ["reduction", "parallel", "parallel"]} ins(%{{.*}}, %[[X]] : tensor<4x2xf64>, tensor<4x3xf64>)
// CHECK: return %{{.*}}, %[[G]] : tensor<f64>, tensor<3x2xf64>
func.func @loss(%x: tensor<4x3xf64>, %w: tensor<3x2xf64>) -> tensor<f64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<4x2xf64>
  %i = linalg.fill ins(%zero : f64) outs(%e : tensor<4x2xf64>) -> tensor<4x2xf64>
  %h = linalg.matmul ins(%x, %w : tensor<4x3xf64>, tensor<3x2xf64>) outs(%i : tensor<4x2xf64>) -> tensor<4x2xf64>
  %t = math.tanh %h : tensor<4x2xf64>
  %es = tensor.empty() : tensor<f64>
  %is = linalg.fill ins(%zero : f64) outs(%es : tensor<f64>) -> tensor<f64>
  %l = linalg.reduce ins(%t : tensor<4x2xf64>) outs(%is : tensor<f64>) dimensions = [0, 1]
    (%a: f64, %b: f64) { %c = arith.addf %a, %b : f64  linalg.yield %c : f64 }
  return %l : tensor<f64>
}

// -----

// REFUSED: the first result of @no_number is tensor<4xf64>: only a number has a gradient
func.func @no_number(%x: tensor<4xf64>, %w: tensor<4xf64>) -> tensor<4xf64> {
  %y = arith.mulf %x, %w : tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

func.func @no_rule(%x: tensor<f64>, %w: tensor<f64>) -> tensor<f64> {
  // REFUSED: math.tan has no derivative here
  %y = math.tan %w : tensor<f64>
  return %y : tensor<f64>
}
