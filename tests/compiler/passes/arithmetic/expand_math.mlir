// RUN: -p expand-math

// CHECK: func.func private @avial.exp.f64(%{{.*}}: f64) -> f64 attributes {always_inline, llvm.linkage = #llvm.linkage<internal>}
// CHECK: math.fma
// CHECK-LABEL: func.func @twice_the_same(
// CHECK: call @avial.exp.f64(
// CHECK: call @avial.exp.f64(
// CHECK-NOT: math.exp
func.func @twice_the_same(%x: f64) -> f64 {
  %y = math.exp %x {avial.expand = "fused"} : f64
  %z = math.exp %y {avial.expand = "fused"} : f64
  return %z : f64
}

// -----

// CHECK: func.func private @avial.log.f32.apart(
// CHECK-NOT: math.fma
// CHECK-LABEL: func.func @without_fused_products(
// CHECK: call @avial.log.f32.apart(
func.func @without_fused_products(%x: f32) -> f32 {
  %y = math.log %x {avial.expand = "apart"} : f32
  return %y : f32
}

// -----

// CHECK: func.func private @avial.erf.4xf32(%{{.*}}: vector<4xf32>) -> vector<4xf32>
// CHECK-LABEL: func.func @vectors(
// CHECK: call @avial.erf.4xf32(
func.func @vectors(%x: vector<4xf32>) -> vector<4xf32> {
  %y = math.erf %x {avial.expand = "fused"} : vector<4xf32>
  return %y : vector<4xf32>
}

// -----

// CHECK: func.func private @avial.powf.f32(%{{.*}}: f32, %{{.*}}: f32) -> f32
// CHECK-LABEL: func.func @two_operands(
// CHECK-SAME: %[[X:.*]]: f32, %[[Y:.*]]: f32)
// CHECK: call @avial.powf.f32(%[[X]], %[[Y]]) : (f32, f32) -> f32
func.func @two_operands(%x: f32, %y: f32) -> f32 {
  %z = math.powf %x, %y {avial.expand = "fused"} : f32
  return %z : f32
}

// -----

// CHECK-LABEL: func.func @leaves_what_is_not_marked(
// CHECK: math.exp
func.func @leaves_what_is_not_marked(%x: f64) -> f64 {
  %y = math.exp %x : f64
  return %y : f64
}

// -----

// CHECK: func.func private @avial.sin.f32.far(%[[X:.*]]: f32) -> f32 attributes {{{.*}}passthrough = ["noinline"]}
// CHECK: arith.extf %[[X]] : f32 to f64
// CHECK-COUNT-3: arith.mului_extended
// CHECK: arith.truncf
// CHECK-NOT: math.sin
// CHECK: func.func private @avial.sin.f32(%[[X:.*]]: f32) -> f32
// CHECK: %[[LIMIT:.*]] = arith.constant 3.216000e+03 : f32
// CHECK: %[[SIZE:.*]] = math.absf %[[X]] : f32
// CHECK: %[[FAR:.*]] = arith.cmpf ugt, %[[SIZE]], %[[LIMIT]] : f32
// CHECK: %[[Y:.*]] = scf.if %[[FAR]] -> (f32) {
// CHECK: func.call @avial.sin.f32.far(%[[X]])
// CHECK: } else {
// CHECK: math.fma
// CHECK: return %[[Y]]
// CHECK-LABEL: func.func @beyond_a_limit(
// CHECK: call @avial.sin.f32(
func.func @beyond_a_limit(%x: f32) -> f32 {
  %y = math.sin %x {avial.expand = "fused"} : f32
  return %y : f32
}

// -----

// CHECK: func.func private @avial.cos.4xf64(%[[X:.*]]: vector<4xf64>) -> vector<4xf64>
// CHECK: %[[FAR:.*]] = arith.cmpf ugt, %{{.*}} : vector<4xf64>
// CHECK: math.fma
// CHECK: %[[SOME:.*]] = vector.reduction <or>, %[[FAR]]
// CHECK: scf.if %[[SOME]]
// CHECK: scf.for %[[LANE:.*]] = %{{.*}} iter_args(%[[SO_FAR:.*]] = %[[NEAR:.*]]) ->
// CHECK: %[[IS_FAR:.*]] = vector.extract %[[FAR]][%[[LANE]]]
// CHECK: scf.if %[[IS_FAR]]
// CHECK: %[[ONE:.*]] = vector.extract %[[X]][%[[LANE]]]
// CHECK: %[[VALUE:.*]] = func.call @avial.cos.f64.far(%[[ONE]])
// CHECK: vector.insert %[[VALUE]], %[[SO_FAR]] [%[[LANE]]]
// CHECK: } else {
// CHECK: } else {
// CHECK: scf.yield %[[NEAR]]
// CHECK-LABEL: func.func @lanes_beyond_a_limit(
// CHECK: call @avial.cos.4xf64(
func.func @lanes_beyond_a_limit(%x: vector<4xf64>) -> vector<4xf64> {
  %y = math.cos %x {avial.expand = "fused"} : vector<4xf64>
  return %y : vector<4xf64>
}

// -----

// CHECK-NOT: scf.if
// CHECK: func.func private @avial.exp.f64(
// CHECK: func.func private @avial.sin.f64.apart.near(
// CHECK-NOT: scf.if
// CHECK-LABEL: func.func @asked_before(
// CHECK: call @avial.sin.f64.apart.near(
// CHECK: call @avial.exp.f64(
func.func @asked_before(%x: f64) -> f64 {
  %y = math.sin %x {avial.expand = "apart", avial.near} : f64
  %z = math.exp %y {avial.expand = "fused", avial.near} : f64
  return %z : f64
}
