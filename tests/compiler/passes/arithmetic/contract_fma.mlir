// RUN: -p contract-fma

// CHECK-LABEL: func.func @left_and_right(
// CHECK-SAME: %[[A:.*]]: f64, %[[B:.*]]: f64, %[[C:.*]]: f64)
// CHECK: %[[S:.*]] = math.fma %[[A]], %[[B]], %[[C]] : f64
// CHECK: %[[T:.*]] = math.fma %[[A]], %[[B]], %[[S]] : f64
// CHECK-NOT: arith.mulf
func.func @left_and_right(%a: f64, %b: f64, %c: f64) -> f64 {
  %p = arith.mulf %a, %b : f64
  %s = arith.addf %p, %c : f64
  %q = arith.mulf %a, %b : f64
  %t = arith.addf %s, %q : f64
  return %t : f64
}

// -----

// CHECK-LABEL: func.func @differences(
// CHECK-SAME: %[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32)
// CHECK: %[[N:.*]] = arith.negf %[[C]] : f32
// CHECK: math.fma %[[A]], %[[B]], %[[N]] : f32
// CHECK: %[[M:.*]] = arith.negf %[[A]] : f32
// CHECK: math.fma %[[M]], %[[B]], %[[C]] : f32
// CHECK-NOT: arith.mulf
func.func @differences(%a: f32, %b: f32, %c: f32) -> (f32, f32) {
  %p = arith.mulf %a, %b : f32
  %s = arith.subf %p, %c : f32
  %q = arith.mulf %a, %b : f32
  %t = arith.subf %c, %q : f32
  return %s, %t : f32, f32
}

// -----

// CHECK-LABEL: func.func @of_two_products_the_left(
// CHECK-SAME: %[[A:.*]]: f64, %[[B:.*]]: f64, %[[C:.*]]: f64, %[[D:.*]]: f64)
// CHECK: %[[Q:.*]] = arith.mulf %[[C]], %[[D]] : f64
// CHECK: math.fma %[[A]], %[[B]], %[[Q]] : f64
// CHECK: %[[R:.*]] = arith.mulf %[[A]], %[[B]] : f64
// CHECK: %[[N:.*]] = arith.negf %[[R]] : f64
// CHECK: math.fma %[[C]], %[[D]], %[[N]] : f64
func.func @of_two_products_the_left(%a: f64, %b: f64, %c: f64, %d: f64) -> (f64, f64) {
  %p = arith.mulf %a, %b : f64
  %q = arith.mulf %c, %d : f64
  %s = arith.addf %p, %q : f64
  %r = arith.mulf %a, %b : f64
  %t = arith.mulf %c, %d : f64
  %u = arith.subf %t, %r : f64
  return %s, %u : f64, f64
}

// -----

// CHECK-LABEL: func.func @vectors(
// CHECK-SAME: %[[A:.*]]: vector<4xf32>, %[[B:.*]]: vector<4xf32>, %[[C:.*]]: vector<4xf32>)
// CHECK: math.fma %[[A]], %[[B]], %[[C]] : vector<4xf32>
func.func @vectors(%a: vector<4xf32>, %b: vector<4xf32>, %c: vector<4xf32>) -> vector<4xf32> {
  %p = arith.mulf %a, %b : vector<4xf32>
  %s = arith.addf %c, %p : vector<4xf32>
  return %s : vector<4xf32>
}

// -----

// CHECK-LABEL: func.func @leaves_what_is_used_twice(
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK-NOT: math.fma
func.func @leaves_what_is_used_twice(%a: f64, %b: f64, %c: f64) -> (f64, f64, f64) {
  %p = arith.mulf %a, %b : f64
  %s = arith.addf %p, %c : f64
  %q = arith.mulf %a, %b : f64
  %d = arith.addf %q, %q : f64
  return %s, %p, %d : f64, f64, f64
}

// -----

// CHECK-LABEL: func.func @leaves_what_stands_in_another_block(
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK-NOT: math.fma
func.func @leaves_what_stands_in_another_block(%a: f64, %b: f64, %C: memref<9xf64>) {
  %p = arith.mulf %a, %b : f64
  affine.for %i = 0 to 9 {
    %c = affine.load %C[%i] : memref<9xf64>
    %s = arith.addf %c, %p : f64
    affine.store %s, %C[%i] : memref<9xf64>
  }
  return
}

// -----

// CHECK-LABEL: func.func @leaves_other_types(
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK-NOT: math.fma
func.func @leaves_other_types(%a: bf16, %b: bf16, %c: bf16) -> bf16 {
  %p = arith.mulf %a, %b : bf16
  %s = arith.addf %p, %c : bf16
  return %s : bf16
}

// -----

// CHECK-LABEL: func.func @named_operations(
// CHECK: linalg.generic
// CHECK: math.fma
func.func @named_operations(%A: memref<2x3xf32>, %B: memref<3x4xf32>, %C: memref<2x4xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.matmul ins(%A, %B : memref<2x3xf32>, memref<3x4xf32>) outs(%C : memref<2x4xf32>)
  linalg.fill ins(%zero : f32) outs(%C : memref<2x4xf32>)
  return
}

// -----

// CHECK-LABEL: func.func @leaves_integers(
// CHECK: linalg.matmul
func.func @leaves_integers(%A: memref<2x3xi32>, %B: memref<3x4xi32>, %C: memref<2x4xi32>) {
  linalg.matmul ins(%A, %B : memref<2x3xi32>, memref<3x4xi32>) outs(%C : memref<2x4xi32>)
  return
}

// -----

// CHECK: module attributes {avial.contracted}
// CHECK-LABEL: func.func @once(
// CHECK: arith.mulf
// CHECK: arith.addf
module attributes {avial.contracted} {
func.func @once(%a: f64, %b: f64, %c: f64) -> f64 {
  %p = arith.mulf %a, %b : f64
  %s = arith.addf %p, %c : f64
  return %s : f64
}
}

// -----

// Two products are added to an element one after the other.

// CHECK-LABEL: func.func @an_element(
// CHECK-SAME: %[[X:.*]]: memref<8xf64>, %[[A:.*]]: f64, %[[B:.*]]: f64, %[[C:.*]]: f64, %[[D:.*]]: f64)
// CHECK: %[[OLD:.*]] = affine.load %[[X]]
// CHECK: %[[S:.*]] = math.fma %[[A]], %[[B]], %[[OLD]] : f64
// CHECK: %[[N:.*]] = arith.negf %[[C]] : f64
// CHECK: %[[T:.*]] = math.fma %[[N]], %[[D]], %[[S]] : f64
// CHECK-NOT: arith.addf
// CHECK: affine.store %[[T]], %[[X]]
func.func @an_element(%x: memref<8xf64>, %a: f64, %b: f64, %c: f64, %d: f64) {
  affine.for %i = 0 to 8 {
    %p = arith.mulf %a, %b : f64
    %q = arith.mulf %c, %d : f64
    %r = arith.subf %p, %q : f64
    %old = affine.load %x[%i] : memref<8xf64>
    %t = arith.addf %old, %r : f64
    affine.store %t, %x[%i] : memref<8xf64>
  }
  return
}

// -----

// Another element, a term that is no product, a sum that something else uses: as the text has them.

// CHECK-LABEL: func.func @other_sums(
// CHECK: %[[P:.*]] = arith.mulf
// CHECK: %[[R:.*]] = math.fma %{{.*}}, %{{.*}}, %[[P]]
// CHECK: %[[T:.*]] = arith.addf %{{.*}}, %[[R]]
// CHECK: affine.store %[[T]], %{{.*}}[%{{.*}} + 1]
// CHECK: %[[R2:.*]] = math.fma
// CHECK: %[[T2:.*]] = arith.addf %{{.*}}, %[[R2]]
// CHECK: affine.store %[[T2]]
// CHECK: %[[P3:.*]] = arith.mulf
// CHECK: %[[R3:.*]] = math.fma %{{.*}}, %{{.*}}, %[[P3]]
// CHECK: %[[T3:.*]] = arith.addf %{{.*}}, %[[R3]]
// CHECK: affine.store %[[T3]]
// CHECK: affine.store %[[R3]]
func.func @other_sums(%x: memref<9xf64>, %y: memref<9xf64>, %a: f64, %b: f64, %c: f64) {
  affine.for %i = 0 to 8 {
    %p = arith.mulf %a, %b : f64
    %q = arith.mulf %c, %b : f64
    %r = arith.addf %p, %q : f64
    %old = affine.load %x[%i] : memref<9xf64>
    %t = arith.addf %old, %r : f64
    affine.store %t, %x[%i + 1] : memref<9xf64>
    %p2 = arith.mulf %a, %b : f64
    %r2 = arith.addf %p2, %c : f64
    %old2 = affine.load %x[%i] : memref<9xf64>
    %t2 = arith.addf %old2, %r2 : f64
    affine.store %t2, %x[%i] : memref<9xf64>
    %p3 = arith.mulf %a, %b : f64
    %q3 = arith.mulf %c, %b : f64
    %r3 = arith.addf %p3, %q3 : f64
    %old3 = affine.load %x[%i] : memref<9xf64>
    %t3 = arith.addf %old3, %r3 : f64
    affine.store %t3, %x[%i] : memref<9xf64>
    affine.store %r3, %y[%i] : memref<9xf64>
  }
  return
}
