// RUN: -p update-weights{of=arg1 rule=sgd+lr:0.5}

// The last result is the gradient of %arg1; in its place stands what the weight becomes.

// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[L:.*]]: tensor<f64>, %[[W:.*]]: tensor<3xf64>, %[[G:.*]]: tensor<3xf64>) -> (tensor<f64>, tensor<3xf64>)
// CHECK: %[[RATE:.*]] = arith.constant 5.000000e-01
// CHECK: %[[NEW:.*]] = linalg.generic {{.*}} ins(%[[W]], %[[G]] :
// CHECK: arith.mulf %{{.*}}, %[[RATE]]
// CHECK: return %[[L]], %[[NEW]] : tensor<f64>, tensor<3xf64>
// CHECK-NOT: func.call
func.func @step(%loss: tensor<f64>, %w: tensor<3xf64>, %g: tensor<3xf64>) -> (tensor<f64>, tensor<3xf64>) {
  return %loss, %g : tensor<f64>, tensor<3xf64>
}

// -----

// REFUSED: @none returns no gradients that weights could follow
func.func @none(%x: tensor<4xf64>, %w: tensor<4xf64>) {
  return
}
