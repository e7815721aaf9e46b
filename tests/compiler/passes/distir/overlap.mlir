// RUN: -p overlap

// That sums are to overlap with what is computed is a mark; nothing else changes.

// CHECK: func.func @step
// CHECK-SAME: avial.overlap = 0
// CHECK: %[[W:.*]] = math.tanh
// CHECK: "distir.all_reduce"(%[[W]])
"distir.mesh"() {devices = dense<[0, 1]> : tensor<2xi64>, sym_name = "m"} : () -> ()
func.func @step(%x: tensor<4x3xf32, #distir.on<@m, "sum">>) -> tensor<4x3xf32, #distir.on<@m, "copy">> {
  %t = math.tanh %x : tensor<4x3xf32, #distir.on<@m, "sum">>
  %u = "distir.all_reduce"(%t) : (tensor<4x3xf32, #distir.on<@m, "sum">>) -> tensor<4x3xf32, #distir.on<@m, "copy">>
  return %u : tensor<4x3xf32, #distir.on<@m, "copy">>
}

// -----

// REFUSED: no sum of partial results could move
func.func @f(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %t = math.tanh %x : tensor<4x3xf32>
  return %t : tensor<4x3xf32>
}
