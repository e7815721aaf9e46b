// RUN: -p choose-collectives

// Few bytes take few rounds, many go round a ring; sums that stay in blocks are left alone.

// CHECK: choose-collectives: the sum of (4, 16 B) over 4 devices by doubling
// CHECK-SAME: choose-collectives: the sum of (4, 16 B) over 4 devices is left to the ring: it stays in blocks
// CHECK: "distir.all_reduce"(%{{.*}}) {avial.summed_by = ["doubling"]}
// CHECK: "distir.all_reduce"(%{{.*}}) {avial.summed_by = ["ring"]}
// CHECK: "distir.reduce_scatter"(%{{.*}}) {avial.summed_by = ["ring"]}
"distir.mesh"() {devices = dense<[0, 1, 2, 3]> : tensor<4xi64>, sym_name = "m"} : () -> ()
func.func @sums(%a: tensor<4xf32, #distir.on<@m, "sum">>, %b: tensor<4000000xf32, #distir.on<@m, "sum">>, %c: tensor<4xf32, #distir.on<@m, "sum">>) -> (tensor<4xf32, #distir.on<@m, "copy">>, tensor<4000000xf32, #distir.on<@m, "copy">>, tensor<4xf32, #distir.on<@m, "split 0">>) {
  %d = "distir.all_reduce"(%a) : (tensor<4xf32, #distir.on<@m, "sum">>) -> tensor<4xf32, #distir.on<@m, "copy">>
  %e = "distir.all_reduce"(%b) : (tensor<4000000xf32, #distir.on<@m, "sum">>) -> tensor<4000000xf32, #distir.on<@m, "copy">>
  %f = "distir.reduce_scatter"(%c) : (tensor<4xf32, #distir.on<@m, "sum">>) -> tensor<4xf32, #distir.on<@m, "split 0">>
  return %d, %e, %f : tensor<4xf32, #distir.on<@m, "copy">>, tensor<4000000xf32, #distir.on<@m, "copy">>, tensor<4xf32, #distir.on<@m, "split 0">>
}

// -----

// CHECK: choose-collectives: nothing is summed over devices so far
func.func @f(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %t = math.tanh %x : tensor<4x3xf32>
  return %t : tensor<4x3xf32>
}
