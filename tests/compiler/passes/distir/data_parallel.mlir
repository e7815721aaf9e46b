// RUN: -p data-parallel{ranks=2}

// The batch is divided, weights are copies; what is summed over the batch is a part on each device.

// CHECK: "distir.mesh"() {devices = dense<[0, 1]> : tensor<2xi64>, sym_name = "m"}
// CHECK-LABEL: func.func @gradient(
// CHECK-SAME: %[[X:.*]]: tensor<6x4xf32, #distir.on<@m, "split 0">>, %[[D:.*]]: tensor<6x3xf32, #distir.on<@m, "split 0">>, %[[W:.*]]: tensor<4x3xf32, #distir.on<@m, "copy">>
// CHECK: linalg.fill {{.*}} -> tensor<4x3xf32, #distir.on<@m, "sum">>
// CHECK: %[[G:.*]] = linalg.generic {{.*}} outs({{.*}} "sum">>)
// CHECK: %[[S:.*]] = "distir.all_reduce"(%[[G]]) {{.*}} -> tensor<4x3xf32, #distir.on<@m, "copy">>
// CHECK: arith.subf %[[W]], %[[S]] : tensor<4x3xf32, #distir.on<@m, "copy">>
func.func @gradient(%x: tensor<6x4xf32>, %d: tensor<6x3xf32>, %w: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x3xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<4x3xf32>) -> tensor<4x3xf32>
  %g = linalg.generic {
    indexing_maps = [affine_map<(i, j, b) -> (b, i)>, affine_map<(i, j, b) -> (b, j)>, affine_map<(i, j, b) -> (i, j)>],
    iterator_types = ["parallel", "parallel", "reduction"]
  } ins(%x, %d : tensor<6x4xf32>, tensor<6x3xf32>) outs(%i : tensor<4x3xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %m = arith.mulf %p, %q : f32
    %n = arith.addf %r, %m : f32
    linalg.yield %n : f32
  } -> tensor<4x3xf32>
  %nw = arith.subf %w, %g : tensor<4x3xf32>
  return %nw : tensor<4x3xf32>
}

// -----

// A sum that begins with more than nothing is not divided: what is read is gathered.

// CHECK-LABEL: func.func @begins_with_a_value(
// CHECK: %[[X:.*]] = "distir.all_gather"(%{{.*}}) : (tensor<6xf32, #distir.on<@m, "split 0">>) -> tensor<6xf32, #distir.on<@m, "copy">>
// CHECK: linalg.reduce ins(%[[X]] : {{.*}} "copy">>) outs(%{{.*}} : tensor<f32, #distir.on<@m, "copy">>)
func.func @begins_with_a_value(%x: tensor<6xf32>, %s: tensor<f32>) -> tensor<f32> {
  %r = linalg.reduce ins(%x : tensor<6xf32>) outs(%s : tensor<f32>) dimensions = [0]
    (%a: f32, %b: f32) { %c = arith.addf %a, %b : f32  linalg.yield %c : f32 }
  return %r : tensor<f32>
}

// -----

// CHECK-LABEL: func.func @no_rows(
// REFUSED: has no tensor whose rows could be divided
func.func @no_rows(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
