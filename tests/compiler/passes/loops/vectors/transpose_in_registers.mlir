// RUN: -p transpose-in-registers{lanes=8}
// ON: x86_64 avx fma

// B lies across A: eight rows of A at once, turned in registers, are rows of B.

// CHECK-DAG: #[[$SET:.*]] = affine_set<(d0) : (-d0 + 24 >= 0)>
// CHECK-DAG: #[[$MAP9:.*]] = affine_map<(d0) -> (d0)>
// CHECK-LABEL: func.func @across(
// CHECK-SAME: %[[A:.*]]: memref<32x40xf64>, %[[B:.*]]: memref<40x32xf64>)
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 32 step 8 {
// CHECK-NEXT: affine.if #[[$SET]](%[[I]]) {
// CHECK: scf.for %[[ARG3:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK: %[[A_1:.*]] = vector.load %[[A]][%{{.*}}, %{{.*}}] : memref<32x40xf64>, vector<4xf64>
// CHECK: %[[A_4:.*]] = vector.load %[[A]][%{{.*}}, %{{.*}}] : memref<32x40xf64>, vector<4xf64>
// CHECK: %[[A_7:.*]] = vector.load %[[A]][%{{.*}}, %{{.*}}] : memref<32x40xf64>, vector<4xf64>
// CHECK: %[[A_10:.*]] = vector.load %[[A]][%{{.*}}, %{{.*}}] : memref<32x40xf64>, vector<4xf64>
// CHECK: %[[A_13:.*]] = vector.load %[[A]][%{{.*}}, %{{.*}}] : memref<32x40xf64>, vector<4xf64>
// CHECK: %[[A_16:.*]] = vector.load %[[A]][%{{.*}}, %{{.*}}] : memref<32x40xf64>, vector<4xf64>
// CHECK: %[[A_19:.*]] = vector.load %[[A]][%{{.*}}, %{{.*}}] : memref<32x40xf64>, vector<4xf64>
// CHECK: %[[A_22:.*]] = vector.load %[[A]][%{{.*}}, %{{.*}}] : memref<32x40xf64>, vector<4xf64>
// CHECK-NEXT: %[[V10:.*]] = vector.shuffle %[[A_1]], %[[A_7]] [0, 1, 4, 5] : vector<4xf64>, vector<4xf64>
// CHECK-NEXT: %[[V11:.*]] = vector.shuffle %[[A_1]], %[[A_7]] [2, 3, 6, 7] : vector<4xf64>, vector<4xf64>
// CHECK-NEXT: %[[V12:.*]] = vector.shuffle %[[A_4]], %[[A_10]] [0, 1, 4, 5] : vector<4xf64>, vector<4xf64>
// CHECK-NEXT: %[[V13:.*]] = vector.shuffle %[[A_4]], %[[A_10]] [2, 3, 6, 7] : vector<4xf64>, vector<4xf64>
// CHECK-NEXT: %[[V14:.*]] = vector.shuffle %[[V10]], %[[V12]] [0, 4, 2, 6] : vector<4xf64>, vector<4xf64>
// CHECK-NEXT: %[[V15:.*]] = vector.shuffle %[[V10]], %[[V12]] [1, 5, 3, 7] : vector<4xf64>, vector<4xf64>
// CHECK-NEXT: %[[V16:.*]] = vector.shuffle %[[V11]], %[[V13]] [0, 4, 2, 6] : vector<4xf64>, vector<4xf64>
// CHECK-NEXT: %[[V17:.*]] = vector.shuffle %[[V11]], %[[V13]] [1, 5, 3, 7] : vector<4xf64>, vector<4xf64>
// CHECK: vector.store %[[V14]], %[[B]][%{{.*}}, %{{.*}}] : memref<40x32xf64>, vector<4xf64>
// CHECK: vector.store %[[V15]], %[[B]][%{{.*}}, %{{.*}}] : memref<40x32xf64>, vector<4xf64>
// CHECK: vector.store %[[V16]], %[[B]][%{{.*}}, %{{.*}}] : memref<40x32xf64>, vector<4xf64>
// CHECK: vector.store %[[V17]], %[[B]][%{{.*}}, %{{.*}}] : memref<40x32xf64>, vector<4xf64>
// CHECK-NEXT: %[[V26:.*]] = vector.shuffle %[[A_13]], %[[A_19]] [0, 1, 4, 5] : vector<4xf64>, vector<4xf64>
// CHECK-NEXT: %[[V27:.*]] = vector.shuffle %[[A_13]], %[[A_19]] [2, 3, 6, 7] : vector<4xf64>, vector<4xf64>
// CHECK-NEXT: %[[V28:.*]] = vector.shuffle %[[A_16]], %[[A_22]] [0, 1, 4, 5] : vector<4xf64>, vector<4xf64>
// CHECK-NEXT: %[[V29:.*]] = vector.shuffle %[[A_16]], %[[A_22]] [2, 3, 6, 7] : vector<4xf64>, vector<4xf64>
// CHECK-NEXT: %[[V30:.*]] = vector.shuffle %[[V26]], %[[V28]] [0, 4, 2, 6] : vector<4xf64>, vector<4xf64>
// CHECK-NEXT: %[[V31:.*]] = vector.shuffle %[[V26]], %[[V28]] [1, 5, 3, 7] : vector<4xf64>, vector<4xf64>
// CHECK-NEXT: %[[V32:.*]] = vector.shuffle %[[V27]], %[[V29]] [0, 4, 2, 6] : vector<4xf64>, vector<4xf64>
// CHECK-NEXT: %[[V33:.*]] = vector.shuffle %[[V27]], %[[V29]] [1, 5, 3, 7] : vector<4xf64>, vector<4xf64>
// CHECK: vector.store %[[V30]], %[[B]][%{{.*}}, %{{.*}}] : memref<40x32xf64>, vector<4xf64>
// CHECK: vector.store %[[V31]], %[[B]][%{{.*}}, %{{.*}}] : memref<40x32xf64>, vector<4xf64>
// CHECK: vector.store %[[V32]], %[[B]][%{{.*}}, %{{.*}}] : memref<40x32xf64>, vector<4xf64>
// CHECK: vector.store %[[V33]], %[[B]][%{{.*}}, %{{.*}}] : memref<40x32xf64>, vector<4xf64>
// CHECK: } else {
// CHECK-NEXT: affine.for %[[ARG3_:.*]] = #[[$MAP9]](%[[I]]) to 32 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 40 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[ARG3_]], %[[J]]] : memref<32x40xf64>
// CHECK-NEXT: affine.store %[[A_]], %[[B]][%[[J]], %[[ARG3_]]] : memref<40x32xf64>
// CHECK-NEXT: } {avial.independent}
// CHECK: return
func.func @across(%A: memref<32x40xf64>, %B: memref<40x32xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 32 {
    affine.for %j = 0 to 40 {
      %a = affine.load %A[%i, %j] : memref<32x40xf64>
      affine.store %a, %B[%j, %i] : memref<40x32xf64>
    } {avial.independent}
  }
  return
}

// -----

// Both along the columns.

// CHECK-LABEL: func.func @leaves_what_lies_alike(
// CHECK-SAME: %[[A:.*]]: memref<32x40xf64>, %[[B:.*]]: memref<32x40xf64>) attributes {avial.no_alias} {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 32 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 40 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]], %[[J]]] : memref<32x40xf64>
// CHECK-NEXT: affine.store %[[A_]], %[[B]][%[[I]], %[[J]]] : memref<32x40xf64>
// CHECK-NEXT: } {avial.independent}
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_what_lies_alike(%A: memref<32x40xf64>, %B: memref<32x40xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 32 {
    affine.for %j = 0 to 40 {
      %a = affine.load %A[%i, %j] : memref<32x40xf64>
      affine.store %a, %B[%i, %j] : memref<32x40xf64>
    } {avial.independent}
  }
  return
}

// -----

// No square of them.

// CHECK-LABEL: func.func @leaves_few_rows(
// CHECK-SAME: %[[A:.*]]: memref<7x40xf64>, %[[B:.*]]: memref<40x7xf64>) attributes {avial.no_alias} {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 7 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 40 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]], %[[J]]] : memref<7x40xf64>
// CHECK-NEXT: affine.store %[[A_]], %[[B]][%[[J]], %[[I]]] : memref<40x7xf64>
// CHECK-NEXT: } {avial.independent}
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_few_rows(%A: memref<7x40xf64>, %B: memref<40x7xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 7 {
    affine.for %j = 0 to 40 {
      %a = affine.load %A[%i, %j] : memref<7x40xf64>
      affine.store %a, %B[%j, %i] : memref<40x7xf64>
    } {avial.independent}
  }
  return
}

// -----

// A row needs the one before it.

// CHECK-LABEL: func.func @leaves_what_depends(
// CHECK-SAME: %[[A:.*]]: memref<40x40xf64>) attributes {avial.no_alias} {
// CHECK-NEXT: affine.for %[[I:.*]] = 1 to 40 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 40 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]] - 1, %[[J]]] : memref<40x40xf64>
// CHECK-NEXT: affine.store %[[A_]], %[[A]][%[[J]], %[[I]]] : memref<40x40xf64>
// CHECK-NEXT: } {avial.independent}
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_what_depends(%A: memref<40x40xf64>) attributes {avial.no_alias} {
  affine.for %i = 1 to 40 {
    affine.for %j = 0 to 40 {
      %a = affine.load %A[%i - 1, %j] : memref<40x40xf64>
      affine.store %a, %A[%j, %i] : memref<40x40xf64>
    } {avial.independent}
  }
  return
}
