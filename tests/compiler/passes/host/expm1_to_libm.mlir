// RUN: -p expm1-to-libm

// CHECK: func.func private @expm1(f64) -> f64
// CHECK-LABEL: func.func @double(
// CHECK: call @expm1(
func.func @double(%x: f64) -> f64 {
  %y = math.expm1 %x : f64
  return %y : f64
}

// -----

// CHECK: func.func private @expm1f(f32) -> f32
// CHECK-LABEL: func.func @half(
// CHECK: %[[W:.*]] = arith.extf
// CHECK: %[[Y:.*]] = call @expm1f(%[[W]])
// CHECK: arith.truncf %[[Y]]
func.func @half(%x: f16) -> f16 {
  %y = math.expm1 %x : f16
  return %y : f16
}

// -----

// CHECK-LABEL: func.func @leaves_vectors_alone(
// CHECK: math.expm1
func.func @leaves_vectors_alone(%x: vector<4xf32>) -> vector<4xf32> {
  %y = math.expm1 %x : vector<4xf32>
  return %y : vector<4xf32>
}
