// RUN: -p fuse-segments

// What the first segment keeps for the second alone, the second makes: the marks are all that
// changes. What is moved, and what would have more kept in its place, stays.

// CHECK: func.func @step
// CHECK-SAME: fuse-segments: 2 operations where they are read: 2 of 2 segments
// CHECK: math.tanh %{{.*}} :
// CHECK: math.exp %{{.*}} {avial.repeated} :
// CHECK: math.absf %{{.*}} {avial.repeated} :
"distir.mesh"() {devices = dense<[0, 1]> : tensor<2xi64>, sym_name = "m"} : () -> ()
func.func @step(%x: tensor<4x3xf32, #distir.on<@m, "split 0">>) -> tensor<4x3xf32, #distir.on<@m, "split 0">> {
  %t = math.tanh %x : tensor<4x3xf32, #distir.on<@m, "split 0">>
  %u = "distir.all_gather"(%t) : (tensor<4x3xf32, #distir.on<@m, "split 0">>) -> tensor<4x3xf32, #distir.on<@m, "copy">>
  %a = math.exp %x : tensor<4x3xf32, #distir.on<@m, "split 0">>
  %b = math.absf %a : tensor<4x3xf32, #distir.on<@m, "split 0">>
  %v = math.cos %u : tensor<4x3xf32, #distir.on<@m, "copy">>
  %w = "distir.scatter"(%v) : (tensor<4x3xf32, #distir.on<@m, "copy">>) -> tensor<4x3xf32, #distir.on<@m, "split 0">>
  %y = arith.addf %w, %b : tensor<4x3xf32, #distir.on<@m, "split 0">>
  return %y : tensor<4x3xf32, #distir.on<@m, "split 0">>
}

// -----

// CHECK: fuse-segments: 1 segment left alone
// CHECK-NOT: avial.repeated
func.func @alone(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %t = math.tanh %x : tensor<4x3xf32>
  return %t : tensor<4x3xf32>
}
