// RUN: -p recompute

// What the first stage keeps until the second has answered is marked; what it sends is not.

// CHECK: %[[T:.*]] = math.tanh %{{.*}} {avial.repeated} :
// CHECK: %[[U:.*]] = math.exp %[[T]] :
// CHECK: "distir.send"(%[[U]])
"distir.mesh"() {devices = dense<0> : tensor<1xi64>, sym_name = "m"} : () -> ()
"distir.mesh"() {devices = dense<1> : tensor<1xi64>, sym_name = "n"} : () -> ()
func.func @step(%x: tensor<4x3xf32, #distir.on<@m, "copy">>) -> tensor<4x3xf32, #distir.on<@m, "copy">> {
  %t = math.tanh %x : tensor<4x3xf32, #distir.on<@m, "copy">>
  %u = math.exp %t : tensor<4x3xf32, #distir.on<@m, "copy">>
  %s = "distir.send"(%u) : (tensor<4x3xf32, #distir.on<@m, "copy">>) -> tensor<4x3xf32, #distir.on<@n, "copy">>
  %v = math.exp %s : tensor<4x3xf32, #distir.on<@n, "copy">>
  %b = "distir.send"(%v) : (tensor<4x3xf32, #distir.on<@n, "copy">>) -> tensor<4x3xf32, #distir.on<@m, "copy">>
  %y = arith.mulf %b, %t : tensor<4x3xf32, #distir.on<@m, "copy">>
  return %y : tensor<4x3xf32, #distir.on<@m, "copy">>
}

// -----

// REFUSED: there is nothing to compute again
func.func @f(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %t = math.tanh %x : tensor<4x3xf32>
  return %t : tensor<4x3xf32>
}
