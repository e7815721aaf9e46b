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

// CHECK-LABEL: func.func @leaves_what_is_not_marked(
// CHECK: math.exp
func.func @leaves_what_is_not_marked(%x: f64) -> f64 {
  %y = math.exp %x : f64
  return %y : f64
}
