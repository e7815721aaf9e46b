// RUN: -p ieee-min-max{machine=x86_64}

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

// CHECK-LABEL: func.func @maximum(
// CHECK: llvm.intr.maximum(%{{.*}}, %{{.*}}) : (vector<4xf32>, vector<4xf32>) -> vector<4xf32>
// CHECK-NOT: arith.maximumf
func.func @maximum(%x: vector<4xf32>, %y: vector<4xf32>) -> vector<4xf32> {
  %n = arith.maximumf %x, %y : vector<4xf32>
  return %n : vector<4xf32>
}

// -----

// The least of all iterations is LLVM's to find, with vectors.
// CHECK-LABEL: func.func @of_a_loop(
// CHECK: %[[LEAST:.*]] = llvm.intr.minimum(
// CHECK-NEXT: scf.yield %[[LEAST]]
func.func @of_a_loop(%A: memref<9xf64>, %first: f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %m = scf.for %i = %c0 to %c9 step %c1 iter_args(%old = %first) -> f64 {
    %x = memref.load %A[%i] : memref<9xf64>
    %new = arith.minimumf %old, %x : f64
    scf.yield %new : f64
  }
  return %m : f64
}

// -----

// What is vectors already takes three operations there too.
// CHECK-LABEL: func.func @vectors_of_a_loop(
// CHECK-NOT: llvm.intr.minimum
// CHECK: arith.ori
func.func @vectors_of_a_loop(%A: memref<9x8xf64>, %first: vector<8xf64>) -> vector<8xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %m = scf.for %i = %c0 to %c9 step %c1 iter_args(%old = %first) -> vector<8xf64> {
    %x = vector.load %A[%i, %c0] : memref<9x8xf64>, vector<8xf64>
    %new = arith.minimumf %old, %x : vector<8xf64>
    scf.yield %new : vector<8xf64>
  }
  return %m : vector<8xf64>
}

// -----

// MLIR takes vectors of vectors apart later.
// CHECK-LABEL: func.func @planes(
// CHECK: arith.maximumf
func.func @planes(%x: vector<2x4xf32>) -> vector<2x4xf32> {
  %n = arith.maximumf %x, %x : vector<2x4xf32>
  return %n : vector<2x4xf32>
}
