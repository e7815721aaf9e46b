// RUN: -p minimum-to-x86{machine=x86_64}

// CHECK-LABEL: func.func @both_orders(
// CHECK-SAME: %[[X:.*]]: vector<4xf32>, %[[Y:.*]]: vector<4xf32>
// CHECK: %[[A:.*]] = arith.cmpf olt, %[[X]], %[[Y]]
// CHECK: %[[P:.*]] = arith.select %[[A]], %[[X]], %[[Y]]
// CHECK: %[[PB:.*]] = arith.bitcast %[[P]] : vector<4xf32> to vector<4xi32>
// CHECK: %[[B:.*]] = arith.cmpf olt, %[[Y]], %[[X]]
// CHECK: %[[Q:.*]] = arith.select %[[B]], %[[Y]], %[[X]]
// CHECK: %[[QB:.*]] = arith.bitcast %[[Q]] : vector<4xf32> to vector<4xi32>
// CHECK: arith.ori %[[PB]], %[[QB]] : vector<4xi32>
func.func @both_orders(%x: vector<4xf32>, %y: vector<4xf32>) -> vector<4xf32> {
  %m = arith.minimumf %x, %y : vector<4xf32>
  return %m : vector<4xf32>
}

// -----

// CHECK-LABEL: func.func @scalar(
// CHECK-NOT: arith.minimumf
// CHECK: arith.bitcast %{{.*}} : i64 to f64
func.func @scalar(%x: f64, %y: f64) -> f64 {
  %m = arith.minimumf %x, %y : f64
  return %m : f64
}

// -----

// CHECK-LABEL: func.func @leaves_maxima_alone(
// CHECK: arith.maximumf
func.func @leaves_maxima_alone(%x: vector<4xf32>) -> vector<4xf32> {
  %n = arith.maximumf %x, %x : vector<4xf32>
  return %n : vector<4xf32>
}
