// RUN: -p horizontal-parallel{ranks=2 of=arg1:1}

// A column and a row: the second weight is divided because the hidden units are, and one sum is left.

// CHECK-LABEL: func.func @mlp(
// CHECK-SAME: %[[X:.*]]: tensor<5x4xf32, #distir.on<@m, "copy">>, %[[W:.*]]: tensor<4x6xf32, #distir.on<@m, "split 1">>, %[[V:.*]]: tensor<6x3xf32, #distir.on<@m, "split 0">>
// CHECK-NOT: "distir.
// CHECK: %[[H:.*]] = linalg.matmul {{.*}} -> tensor<5x6xf32, #distir.on<@m, "split 1">>
// CHECK: %[[T:.*]] = math.tanh %[[H]] : tensor<5x6xf32, #distir.on<@m, "split 1">>
// CHECK: %[[Y:.*]] = linalg.matmul {{.*}} -> tensor<5x3xf32, #distir.on<@m, "sum">>
// CHECK: "distir.all_reduce"(%[[Y]]) {{.*}} -> tensor<5x3xf32, #distir.on<@m, "copy">>
func.func @mlp(%x: tensor<5x4xf32>, %w: tensor<4x6xf32>, %v: tensor<6x3xf32>) -> tensor<5x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x6xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<5x6xf32>) -> tensor<5x6xf32>
  %h = linalg.matmul ins(%x, %w : tensor<5x4xf32>, tensor<4x6xf32>) outs(%i : tensor<5x6xf32>) -> tensor<5x6xf32>
  %t = math.tanh %h : tensor<5x6xf32>
  %e2 = tensor.empty() : tensor<5x3xf32>
  %i2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<5x3xf32>) -> tensor<5x3xf32>
  %y = linalg.matmul ins(%t, %v : tensor<5x6xf32>, tensor<6x3xf32>) outs(%i2 : tensor<5x3xf32>) -> tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}

// -----

// CHECK-LABEL: func.func @too_few(
// REFUSED: there is no tensor %arg1 among the arguments
func.func @too_few(%x: tensor<5x4xf32>) -> tensor<5x4xf32> {
  return %x : tensor<5x4xf32>
}
