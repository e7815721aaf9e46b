// RUN: -p lower-placements

// A task for each device, on its block: the first has two rows, the second three.

// CHECK-LABEL: func.func @rows(%{{.*}}: memref<5x3xf32>) -> memref<5x3xf32>
// CHECK: %[[Y:.*]] = memref.alloc() : memref<5x3xf32>
// CHECK: "avial.task"
// CHECK: memref.subview %{{.*}}[0, 0] [2, 3] [1, 1]
// CHECK: math.tanh
// CHECK: avial.on_rank = 0 : i64
// CHECK: "avial.task"
// CHECK: memref.subview %{{.*}}[2, 0] [3, 3] [1, 1]
// CHECK: math.tanh
// CHECK: avial.on_rank = 1 : i64
// CHECK-NOT: "avial.task"
// CHECK: return %[[Y]]
"distir.mesh"() {sym_name = "m", devices = dense<[0, 1]> : tensor<2xi64>} : () -> ()
func.func @rows(%x: tensor<5x3xf32, #distir.on<@m, "split 0">>) -> tensor<5x3xf32, #distir.on<@m, "split 0">> {
  %y = math.tanh %x : tensor<5x3xf32, #distir.on<@m, "split 0">>
  return %y : tensor<5x3xf32, #distir.on<@m, "split 0">>
}

// -----

// Sums over the rows: each device has its part in a slot of its own, and the blocks of the sum end at
// different devices.

// CHECK-LABEL: func.func @columns_sums
// CHECK: memref.alloc() : memref<2x4xf32>
// CHECK: linalg.reduce
// CHECK: avial.on_rank = 0 : i64, name = "S1_on0"
// CHECK: avial.on_rank = 1 : i64, name = "S1_on1"
// CHECK: arith.addf
// CHECK: avial.on_rank = 0 : i64, avial.summed = 6 : i64
// CHECK: arith.addf
// CHECK: avial.on_rank = 1 : i64
"distir.mesh"() {sym_name = "m", devices = dense<[0, 1]> : tensor<2xi64>} : () -> ()
func.func @columns_sums(%x: tensor<6x4xf32, #distir.on<@m, "split 0">>) -> tensor<4xf32, #distir.on<@m, "copy">> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32, #distir.on<@m, "sum">>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32, #distir.on<@m, "sum">>) -> tensor<4xf32, #distir.on<@m, "sum">>
  %s = linalg.reduce ins(%x : tensor<6x4xf32, #distir.on<@m, "split 0">>) outs(%i : tensor<4xf32, #distir.on<@m, "sum">>) dimensions = [0]
    (%a: f32, %b: f32) { %c = arith.addf %a, %b : f32  linalg.yield %c : f32 }
  %r = "distir.all_reduce"(%s) : (tensor<4xf32, #distir.on<@m, "sum">>) -> tensor<4xf32, #distir.on<@m, "copy">>
  return %r : tensor<4xf32, #distir.on<@m, "copy">>
}

// -----

"distir.mesh"() {sym_name = "m", devices = dense<[0, 1]> : tensor<2xi64>} : () -> ()
func.func @parts_are_read(%x: tensor<6x4xf32, #distir.on<@m, "split 1">>, %w: tensor<4x3xf32, #distir.on<@m, "split 0">>) -> tensor<6x3xf32, #distir.on<@m, "sum">> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x3xf32, #distir.on<@m, "sum">>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<6x3xf32, #distir.on<@m, "sum">>) -> tensor<6x3xf32, #distir.on<@m, "sum">>
  %y = linalg.matmul ins(%x, %w : tensor<6x4xf32, #distir.on<@m, "split 1">>, tensor<4x3xf32, #distir.on<@m, "split 0">>) outs(%i : tensor<6x3xf32, #distir.on<@m, "sum">>) -> tensor<6x3xf32, #distir.on<@m, "sum">>
  // REFUSED: math.tanh reads a value of which each device holds a part
  %t = math.tanh %y : tensor<6x3xf32, #distir.on<@m, "sum">>
  return %t : tensor<6x3xf32, #distir.on<@m, "sum">>
}
