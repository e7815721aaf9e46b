// RUN: -p parallel-first

// The sum is inside then; the number of the term keeps its meaning.

// CHECK-DAG: #[[$MAP:.*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-DAG: #[[$MAP1:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @columns(
// CHECK-SAME: %[[A:.*]]: memref<5x7xf64>, %[[Y:.*]]: memref<7xf64>) {
// CHECK-NEXT: linalg.generic {indexing_maps = [#[[$MAP]], #[[$MAP1]]], iterator_types = ["parallel", "reduction"]} ins(%[[A]] : memref<5x7xf64>) outs(%[[Y]] : memref<7xf64>) {
// CHECK-NEXT: ^bb0(%[[A_:.*]]: f64, %[[S:.*]]: f64):
// CHECK-NEXT: %[[K:.*]] = linalg.index 1 : index
// CHECK-NEXT: %[[KF:.*]] = arith.index_cast %[[K]] : index to i64
// CHECK-NEXT: %[[KD:.*]] = arith.sitofp %[[KF]] : i64 to f64
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[A_]], %[[KD]] : f64
// CHECK-NEXT: %[[T:.*]] = arith.addf %[[S]], %[[P]] : f64
// CHECK-NEXT: linalg.yield %[[T]] : f64
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @columns(%A: memref<5x7xf64>, %y: memref<7xf64>) {
  linalg.generic {
    indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>],
    iterator_types = ["reduction", "parallel"]
  } ins(%A : memref<5x7xf64>) outs(%y : memref<7xf64>) {
  ^bb0(%a: f64, %s: f64):
    %k = linalg.index 0 : index
    %kf = arith.index_cast %k : index to i64
    %kd = arith.sitofp %kf : i64 to f64
    %p = arith.mulf %a, %kd : f64
    %t = arith.addf %s, %p : f64
    linalg.yield %t : f64
  }
  return
}

// -----

// Parallel iterators keep their order.

// CHECK-DAG: #[[$MAP:.*]] = affine_map<(d0, d1, d2) -> (d0, d2, d1)>
// CHECK-DAG: #[[$MAP1:.*]] = affine_map<(d0, d1, d2) -> (d1, d0)>
// CHECK-LABEL: func.func @between(
// CHECK-SAME: %[[A:.*]]: memref<5x7x3xf64>, %[[Y:.*]]: memref<3x5xf64>) {
// CHECK-NEXT: linalg.generic {indexing_maps = [#[[$MAP]], #[[$MAP1]]], iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[A]] : memref<5x7x3xf64>) outs(%[[Y]] : memref<3x5xf64>) {
// CHECK-NEXT: ^bb0(%[[A_:.*]]: f64, %[[S:.*]]: f64):
// CHECK-NEXT: %[[T:.*]] = arith.addf %[[S]], %[[A_]] : f64
// CHECK-NEXT: linalg.yield %[[T]] : f64
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @between(%A: memref<5x7x3xf64>, %Y: memref<3x5xf64>) {
  linalg.generic {
    indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d2, d0)>],
    iterator_types = ["parallel", "reduction", "parallel"]
  } ins(%A : memref<5x7x3xf64>) outs(%Y : memref<3x5xf64>) {
  ^bb0(%a: f64, %s: f64):
    %t = arith.addf %s, %a : f64
    linalg.yield %t : f64
  }
  return
}

// -----

// CHECK-DAG: #[[$MAP:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[$MAP1:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @leaves_good_order(
// CHECK-SAME: %[[A:.*]]: memref<5x7xf64>, %[[Y:.*]]: memref<5xf64>) {
// CHECK-NEXT: linalg.generic {indexing_maps = [#[[$MAP]], #[[$MAP1]]], iterator_types = ["parallel", "reduction"]} ins(%[[A]] : memref<5x7xf64>) outs(%[[Y]] : memref<5xf64>) {
// CHECK-NEXT: ^bb0(%[[A_:.*]]: f64, %[[S:.*]]: f64):
// CHECK-NEXT: %[[T:.*]] = arith.addf %[[S]], %[[A_]] : f64
// CHECK-NEXT: linalg.yield %[[T]] : f64
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_good_order(%A: memref<5x7xf64>, %y: memref<5xf64>) {
  linalg.generic {
    indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%A : memref<5x7xf64>) outs(%y : memref<5xf64>) {
  ^bb0(%a: f64, %s: f64):
    %t = arith.addf %s, %a : f64
    linalg.yield %t : f64
  }
  return
}

// -----

// Every element would see others' sums.

// CHECK-DAG: #[[$MAP:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: #[[$MAP1:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @leaves_what_reads_its_output(
// CHECK-SAME: %[[Y:.*]]: memref<7xf64>) {
// CHECK-NEXT: linalg.generic {indexing_maps = [#[[$MAP]], #[[$MAP1]]], iterator_types = ["reduction", "parallel"]} ins(%[[Y]] : memref<7xf64>) outs(%[[Y]] : memref<7xf64>) {
// CHECK-NEXT: ^bb0(%[[A:.*]]: f64, %[[S:.*]]: f64):
// CHECK-NEXT: %[[T:.*]] = arith.addf %[[S]], %[[A]] : f64
// CHECK-NEXT: linalg.yield %[[T]] : f64
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_what_reads_its_output(%y: memref<7xf64>) {
  linalg.generic {
    indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d1)>],
    iterator_types = ["reduction", "parallel"]
  } ins(%y : memref<7xf64>) outs(%y : memref<7xf64>) {
  ^bb0(%a: f64, %s: f64):
    %t = arith.addf %s, %a : f64
    linalg.yield %t : f64
  }
  return
}

// -----

// Two points of the parallel iterators add to one element.

// CHECK-DAG: #[[$MAP:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[$MAP1:.*]] = affine_map<(d0, d1) -> (d0 + d1)>
// CHECK-LABEL: func.func @leaves_outputs_by_other_maps(
// CHECK-SAME: %[[A:.*]]: memref<5x7xf64>, %[[Y:.*]]: memref<11xf64>) {
// CHECK-NEXT: linalg.generic {indexing_maps = [#[[$MAP]], #[[$MAP1]]], iterator_types = ["reduction", "parallel"]} ins(%[[A]] : memref<5x7xf64>) outs(%[[Y]] : memref<11xf64>) {
// CHECK-NEXT: ^bb0(%[[A_:.*]]: f64, %[[S:.*]]: f64):
// CHECK-NEXT: %[[T:.*]] = arith.addf %[[S]], %[[A_]] : f64
// CHECK-NEXT: linalg.yield %[[T]] : f64
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_outputs_by_other_maps(%A: memref<5x7xf64>, %y: memref<11xf64>) {
  linalg.generic {
    indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0 + d1)>],
    iterator_types = ["reduction", "parallel"]
  } ins(%A : memref<5x7xf64>) outs(%y : memref<11xf64>) {
  ^bb0(%a: f64, %s: f64):
    %t = arith.addf %s, %a : f64
    linalg.yield %t : f64
  }
  return
}
