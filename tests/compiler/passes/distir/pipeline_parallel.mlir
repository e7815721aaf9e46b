// RUN: -p pipeline-parallel{stages=2 microbatches=3 schedule=gpipe}

// Weights on two devices; what the first computes is sent; the batch comes in three turns.

// CHECK-DAG: "distir.mesh"() {devices = dense<0> : tensor<i64>, sym_name = "m", turns = 3 : i64}
// CHECK-DAG: "distir.mesh"() {devices = dense<1> : tensor<i64>, sym_name = "m_1", turns = 3 : i64}
// CHECK: func.func @mlp(
// CHECK-SAME: tensor<6x4xf32, #distir.on<@m, "split 0">>, %{{.*}}: tensor<4x5xf32, #distir.on<@m, "copy">>, %{{.*}}: tensor<5x3xf32, #distir.on<@m_1, "copy">>
// CHECK-SAME: avial.pipeline = "gpipe"
// CHECK: %[[T:.*]] = math.tanh %{{.*}} : tensor<6x5xf32, #distir.on<@m, "split 0">>
// CHECK-NEXT: "distir.send"(%[[T]]) {{.*}} -> tensor<6x5xf32, #distir.on<@m_1, "split 0">>
// CHECK: linalg.matmul {{.*}} -> tensor<6x3xf32, #distir.on<@m_1, "split 0">>
func.func @mlp(%x: tensor<6x4xf32>, %w: tensor<4x5xf32>, %v: tensor<5x3xf32>) -> tensor<6x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x5xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<6x5xf32>) -> tensor<6x5xf32>
  %h = linalg.matmul ins(%x, %w : tensor<6x4xf32>, tensor<4x5xf32>) outs(%i : tensor<6x5xf32>) -> tensor<6x5xf32>
  %t = math.tanh %h : tensor<6x5xf32>
  %e2 = tensor.empty() : tensor<6x3xf32>
  %i2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<6x3xf32>) -> tensor<6x3xf32>
  %y = linalg.matmul ins(%t, %v : tensor<6x5xf32>, tensor<5x3xf32>) outs(%i2 : tensor<6x3xf32>) -> tensor<6x3xf32>
  return %y : tensor<6x3xf32>
}

// -----

// REFUSED: 2 stages of a function that reads 1 weights
func.func @one_weight(%x: tensor<6x4xf32>, %w: tensor<4xf32>) -> tensor<6x4xf32> {
  %e = tensor.empty() : tensor<6x4xf32>
  %b = linalg.broadcast ins(%w : tensor<4xf32>) outs(%e : tensor<6x4xf32>) dimensions = [0]
  %y = arith.addf %x, %b : tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}
