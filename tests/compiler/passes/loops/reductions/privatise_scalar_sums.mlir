// RUN: -p privatise-scalar-sums

// One sum of four million terms: parts with sums of their own, a line of the cache apart.

// CHECK-DAG: #[[$MAP:.*]] = affine_map<(d0) -> (d0)>
// CHECK-DAG: #[[$MAP1:.*]] = affine_map<(d0) -> (4000000, d0 + 125000)>
// CHECK-LABEL: func.func @one_sum(
// CHECK-SAME: %[[A:.*]]: memref<4000000xf64>, %[[Y:.*]]: memref<1xf64>, %[[X:.*]]: f64)
// CHECK-SAME: avial.sums = 4000000 : i64
// CHECK-SAME: avial.task = "S1"
// CHECK-NEXT: %[[S:.*]] = memref.alloc() {alignment = 64 : i64} : memref<33x8xf64>
// CHECK-NEXT: %[[S_0:.*]] = arith.constant -0.000000e+00 : f64
// CHECK-NEXT: affine.for %[[FROM:.*]] = 0 to 4000000 step 125000 {
// CHECK-NEXT: %[[S_2:.*]] = affine.for %[[I:.*]] = #[[$MAP]](%[[FROM]]) to min #[[$MAP1]](%[[FROM]]) iter_args(%[[T:.*]] = %[[S_0]]) -> (f64) {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]]] : memref<4000000xf64>
// CHECK-NEXT: %[[U:.*]] = arith.addf %[[T]], %[[A_]] : f64
// CHECK-NEXT: affine.yield %[[U]] : f64
// CHECK-NEXT: }
// CHECK-NEXT: affine.store %[[S_2]], %[[S]][%[[FROM]] floordiv 125000, 0] : memref<33x8xf64>
// CHECK-NEXT: } {avial.parallel}
// CHECK-NEXT: %[[S_1:.*]] = affine.for %[[FROM_:.*]] = 0 to 4000000 step 125000 iter_args(%[[S_2_:.*]] = %[[X]]) -> (f64) {
// CHECK-NEXT: %[[S_3:.*]] = affine.load %[[S]][%[[FROM_]] floordiv 125000, 0] : memref<33x8xf64>
// CHECK-NEXT: %[[S_4:.*]] = arith.addf %[[S_2_]], %[[S_3]] : f64
// CHECK-NEXT: affine.yield %[[S_4]] : f64
// CHECK-NEXT: }
// CHECK-NEXT: memref.dealloc %[[S]] : memref<33x8xf64>
// CHECK-NEXT: affine.store %[[S_1]], %[[Y]][0] : memref<1xf64>
// CHECK-NEXT: return
func.func @one_sum(%A: memref<4000000xf64>, %y: memref<1xf64>, %x: f64) attributes {avial.no_alias, avial.task = "S1"} {
  %s = affine.for %i = 0 to 4000000 iter_args(%t = %x) -> (f64) {
    %a = affine.load %A[%i] : memref<4000000xf64>
    %u = arith.addf %t, %a : f64
    affine.yield %u : f64
  }
  affine.store %s, %y[0] : memref<1xf64>
  return
}

// -----

// The greatest of a part begins with what the loop began with.

// CHECK-DAG: #[[$MAP:.*]] = affine_map<(d0) -> (d0)>
// CHECK-DAG: #[[$MAP1:.*]] = affine_map<(d0) -> (4000000, d0 + 125000)>
// CHECK-LABEL: func.func @the_greatest(
// CHECK-SAME: %[[A:.*]]: memref<4000000xf64>, %[[Y:.*]]: memref<1xf64>, %[[X:.*]]: f64)
// CHECK-SAME: avial.task = "S1"
// CHECK-NEXT: %[[S:.*]] = memref.alloc() {alignment = 64 : i64} : memref<33x8xf64>
// CHECK-NEXT: affine.for %[[FROM:.*]] = 0 to 4000000 step 125000 {
// CHECK-NEXT: %[[S_1:.*]] = affine.for %[[I:.*]] = #[[$MAP]](%[[FROM]]) to min #[[$MAP1]](%[[FROM]]) iter_args(%[[T:.*]] = %[[X]]) -> (f64) {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]]] : memref<4000000xf64>
// CHECK-NEXT: %[[U:.*]] = arith.maximumf %[[T]], %[[A_]] : f64
// CHECK-NEXT: affine.yield %[[U]] : f64
// CHECK-NEXT: }
// CHECK-NEXT: affine.store %[[S_1]], %[[S]][%[[FROM]] floordiv 125000, 0] : memref<33x8xf64>
// CHECK-NEXT: } {avial.parallel}
// CHECK-NEXT: %[[S_0:.*]] = affine.for %[[FROM_:.*]] = 0 to 4000000 step 125000 iter_args(%[[S_1_:.*]] = %[[X]]) -> (f64) {
// CHECK-NEXT: %[[S_2:.*]] = affine.load %[[S]][%[[FROM_]] floordiv 125000, 0] : memref<33x8xf64>
// CHECK-NEXT: %[[S_3:.*]] = arith.maximumf %[[S_1_]], %[[S_2]] : f64
// CHECK-NEXT: affine.yield %[[S_3]] : f64
// CHECK-NEXT: }
// CHECK-NEXT: memref.dealloc %[[S]] : memref<33x8xf64>
// CHECK-NEXT: affine.store %[[S_0]], %[[Y]][0] : memref<1xf64>
// CHECK-NEXT: return
func.func @the_greatest(%A: memref<4000000xf64>, %y: memref<1xf64>, %x: f64) attributes {avial.no_alias, avial.task = "S1"} {
  %s = affine.for %i = 0 to 4000000 iter_args(%t = %x) -> (f64) {
    %a = affine.load %A[%i] : memref<4000000xf64>
    %u = arith.maximumf %t, %a : f64
    affine.yield %u : f64
  }
  affine.store %s, %y[0] : memref<1xf64>
  return
}

// -----

// Over before threads meet.

// CHECK-LABEL: func.func @leaves_few_terms(
// CHECK-SAME: %[[A:.*]]: memref<20000xf64>, %[[Y:.*]]: memref<1xf64>, %[[X:.*]]: f64) attributes {avial.no_alias, avial.task = "S1"} {
// CHECK-NEXT: %[[S:.*]] = affine.for %[[I:.*]] = 0 to 20000 iter_args(%[[T:.*]] = %[[X]]) -> (f64) {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]]] : memref<20000xf64>
// CHECK-NEXT: %[[U:.*]] = arith.addf %[[T]], %[[A_]] : f64
// CHECK-NEXT: affine.yield %[[U]] : f64
// CHECK-NEXT: }
// CHECK-NEXT: affine.store %[[S]], %[[Y]][0] : memref<1xf64>
// CHECK-NEXT: return
func.func @leaves_few_terms(%A: memref<20000xf64>, %y: memref<1xf64>, %x: f64) attributes {avial.no_alias, avial.task = "S1"} {
  %s = affine.for %i = 0 to 20000 iter_args(%t = %x) -> (f64) {
    %a = affine.load %A[%i] : memref<20000xf64>
    %u = arith.addf %t, %a : f64
    affine.yield %u : f64
  }
  affine.store %s, %y[0] : memref<1xf64>
  return
}

// -----

// Each value needs the one before.

// CHECK-LABEL: func.func @leaves_other_recurrences(
// CHECK-SAME: %[[A:.*]]: memref<4000000xf64>, %[[Y:.*]]: memref<1xf64>, %[[X:.*]]: f64) attributes {avial.no_alias, avial.task = "S1"} {
// CHECK-NEXT: %[[S:.*]] = affine.for %[[I:.*]] = 0 to 4000000 iter_args(%[[T:.*]] = %[[X]]) -> (f64) {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]]] : memref<4000000xf64>
// CHECK-NEXT: %[[U:.*]] = arith.subf %[[A_]], %[[T]] : f64
// CHECK-NEXT: affine.yield %[[U]] : f64
// CHECK-NEXT: }
// CHECK-NEXT: affine.store %[[S]], %[[Y]][0] : memref<1xf64>
// CHECK-NEXT: return
func.func @leaves_other_recurrences(%A: memref<4000000xf64>, %y: memref<1xf64>, %x: f64) attributes {avial.no_alias, avial.task = "S1"} {
  %s = affine.for %i = 0 to 4000000 iter_args(%t = %x) -> (f64) {
    %a = affine.load %A[%i] : memref<4000000xf64>
    %u = arith.subf %a, %t : f64
    affine.yield %u : f64
  }
  affine.store %s, %y[0] : memref<1xf64>
  return
}

// -----

// CHECK-LABEL: func.func @leaves_strict_sums(
// CHECK-SAME: %[[A:.*]]: memref<4000000xf64>, %[[Y:.*]]: memref<1xf64>, %[[X:.*]]: f64) attributes {avial.no_alias, avial.task = "S1"} {
// CHECK-NEXT: %[[S:.*]] = affine.for %[[I:.*]] = 0 to 4000000 iter_args(%[[T:.*]] = %[[X]]) -> (f64) {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]]] : memref<4000000xf64>
// CHECK-NEXT: %[[U:.*]] = arith.addf %[[T]], %[[A_]] : f64
// CHECK-NEXT: affine.yield %[[U]] : f64
// CHECK-NEXT: }
// CHECK-NEXT: affine.store %[[S]], %[[Y]][0] : memref<1xf64>
// CHECK-NEXT: return
module attributes {avial.strict} {
  func.func @leaves_strict_sums(%A: memref<4000000xf64>, %y: memref<1xf64>, %x: f64) attributes {avial.no_alias, avial.task = "S1"} {
    %s = affine.for %i = 0 to 4000000 iter_args(%t = %x) -> (f64) {
      %a = affine.load %A[%i] : memref<4000000xf64>
      %u = arith.addf %t, %a : f64
      affine.yield %u : f64
    }
    affine.store %s, %y[0] : memref<1xf64>
    return
  }
}
