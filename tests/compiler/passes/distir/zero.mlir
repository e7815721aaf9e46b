// RUN: -p zero{level=2}

// Gradients are left in blocks, with which each replica updates its part of the weight; then all
// hand these out, and each keeps a copy.

// CHECK: func.func @step(%[[X:.*]]: tensor<5x4xf64, #distir.on<@m, "split 0">>, %[[W:.*]]: tensor<4xf64, #distir.on<@m, "copy">>)
// CHECK-SAME: avial.kept = array<i64: 0>
// CHECK-DAG: %[[MINE:.*]] = "distir.scatter"(%[[W]])
// CHECK-DAG: %[[G:.*]] = "distir.reduce_scatter"(%{{.*}}) {avial.gradient_of = "{{.*}}"} : {{.*}} -> tensor<4xf64, #distir.on<@m, "split 0">>
// CHECK: %[[PART:.*]] = arith.subf %[[MINE]], %[[G]] : tensor<4xf64, #distir.on<@m, "split 0">>
// CHECK: %[[ALL:.*]] = "distir.all_gather"(%[[PART]])
// CHECK: %[[NEW:.*]] = linalg.copy ins(%[[ALL]]
// CHECK: return %[[NEW]] : tensor<4xf64, #distir.on<@m, "copy">>
"distir.mesh"() {devices = dense<[0, 1]> : tensor<2xi64>, sym_name = "m"} : () -> ()
func.func @step(%x: tensor<5x4xf64, #distir.on<@m, "split 0">>, %w: tensor<4xf64, #distir.on<@m, "copy">>)
    -> tensor<4xf64, #distir.on<@m, "copy">> attributes {avial.follows = array<i64: 1>, avial.weights = array<i64: 1>} {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<4xf64, #distir.on<@m, "sum">>
  %i = linalg.fill ins(%zero : f64) outs(%e : tensor<4xf64, #distir.on<@m, "sum">>) -> tensor<4xf64, #distir.on<@m, "sum">>
  %p = linalg.reduce ins(%x : tensor<5x4xf64, #distir.on<@m, "split 0">>) outs(%i : tensor<4xf64, #distir.on<@m, "sum">>) dimensions = [0]
    (%a: f64, %b: f64) { %c = arith.addf %a, %b : f64  linalg.yield %c : f64 }
  %g = "distir.all_reduce"(%p) : (tensor<4xf64, #distir.on<@m, "sum">>) -> tensor<4xf64, #distir.on<@m, "copy">>
  %n = arith.subf %w, %g : tensor<4xf64, #distir.on<@m, "copy">>
  return %n : tensor<4xf64, #distir.on<@m, "copy">>
}

// -----

// REFUSED: no argument of the function follows a gradient
func.func @none(%x: tensor<4xf64>) -> tensor<4xf64> {
  return %x : tensor<4xf64>
}
