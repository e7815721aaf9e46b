// RUN: -p vectorise-outer{lanes=4}

// What is the same for all rows stays a number until it meets a vector.

// CHECK-LABEL: func.func @horner
// CHECK: affine.for %[[FIRST:.*]] = 0 to 70 step 4 {
// CHECK-NEXT: affine.if
// CHECK-NEXT: %[[X:.*]] = affine.vector_load %{{.*}}[%[[FIRST]]] : memref<70xf64>, vector<4xf64>
// CHECK: affine.for %[[Q:.*]] = 0 to 20 iter_args(%[[S:.*]] = %{{.*}}) -> (vector<4xf64>) {
// CHECK-NEXT: %[[C:.*]] = affine.load %{{.*}}[%[[Q]]] : memref<20xf64>
// CHECK-NEXT: %[[CS:.*]] = vector.broadcast %[[C]] : f64 to vector<4xf64>
// CHECK-NEXT: math.fma %[[S]], %[[X]], %[[CS]] : vector<4xf64>
// CHECK: affine.vector_store %{{.*}}, %{{.*}}[%[[FIRST]]] : memref<70xf64>, vector<4xf64>
// CHECK: } else {
// CHECK: affine.load
func.func @horner(%x: memref<70xf64>, %c: memref<20xf64>, %y: memref<70xf64>, %zero: f64) attributes {avial.no_alias} {
  affine.for %j = 0 to 70 {
    %a = affine.load %x[%j] : memref<70xf64>
    %r = affine.for %q = 0 to 20 iter_args(%s = %zero) -> (f64) {
      %b = affine.load %c[%q] : memref<20xf64>
      %t = math.fma %s, %a, %b : f64
      affine.yield %t : f64
    }
    affine.store %r, %y[%j] : memref<70xf64>
  }
  return
}

// -----

// Lanes that are through stay as they are, until all of them are.

// CHECK-LABEL: func.func @until
// CHECK: scf.while
// CHECK: %[[ON:.*]] = arith.cmpf olt, %{{.*}} : vector<4xf32>
// CHECK: %[[SOME:.*]] = vector.reduction <or>, %[[ON]]
// CHECK: scf.condition(%[[SOME]])
// CHECK: arith.select
func.func @until(%x: memref<70xf32>, %y: memref<70xf32>, %end: f32) attributes {avial.no_alias} {
  affine.for %j = 0 to 70 {
    %a = affine.load %x[%j] : memref<70xf32>
    %r = scf.while (%s = %a) : (f32) -> f32 {
      %on = arith.cmpf olt, %s, %end : f32
      scf.condition(%on) %s : f32
    } do {
    ^bb0(%s: f32):
      %t = arith.mulf %s, %s : f32
      %u = arith.addf %t, %end : f32
      scf.yield %u : f32
    }
    affine.store %r, %y[%j] : memref<70xf32>
  }
  return
}

// -----

// Who is through must not store again.

// CHECK-LABEL: func.func @stores_until
// CHECK-NOT: vector<
// CHECK: return
func.func @stores_until(%x: memref<70xf32>, %y: memref<70xf32>, %end: f32) attributes {avial.no_alias} {
  affine.for %j = 0 to 70 {
    %a = affine.load %x[%j] : memref<70xf32>
    %r = scf.while (%s = %a) : (f32) -> f32 {
      affine.store %s, %y[%j] : memref<70xf32>
      %on = arith.cmpf olt, %s, %end : f32
      %t = arith.addf %s, %s : f32
      scf.condition(%on) %t : f32
    } do {
    ^bb0(%s: f32):
      scf.yield %s : f32
    }
    affine.store %r, %x[%j] : memref<70xf32>
  }
  return
}

// -----

// Each row needs what the one before it stored.

// CHECK-LABEL: func.func @in_order
// CHECK-NOT: vector
func.func @in_order(%x: memref<70xf64>, %c: memref<20xf64>) attributes {avial.no_alias} {
  affine.for %j = 1 to 70 {
    %a = affine.load %x[%j - 1] : memref<70xf64>
    %r = affine.for %q = 0 to 20 iter_args(%s = %a) -> (f64) {
      %b = affine.load %c[%q] : memref<20xf64>
      %t = math.fma %s, %a, %b : f64
      affine.yield %t : f64
    }
    affine.store %r, %x[%j] : memref<70xf64>
  }
  return
}

// -----

// The loop inside makes vectors of its own.

// CHECK-LABEL: func.func @a_maximum
// CHECK-NOT: vector
func.func @a_maximum(%x: memref<90xf64>, %y: memref<70xf64>, %low: f64) attributes {avial.no_alias} {
  affine.for %j = 0 to 70 {
    %r = affine.for %q = 0 to 20 iter_args(%s = %low) -> (f64) {
      %b = affine.load %x[%j + %q] : memref<90xf64>
      %t = arith.maximumf %s, %b : f64
      affine.yield %t : f64
    }
    affine.store %r, %y[%j] : memref<70xf64>
  }
  return
}

// -----

// Vectors would be put together element by element, for two operations on them.

// CHECK-LABEL: func.func @far_apart
// CHECK-NOT: vector
func.func @far_apart(%x: memref<70x20xf64>, %y: memref<70x20xf64>, %zero: f64) attributes {avial.no_alias} {
  affine.for %j = 0 to 70 {
    %r = affine.for %q = 0 to 20 iter_args(%s = %zero) -> (f64) {
      %b = affine.load %x[%j, %q] : memref<70x20xf64>
      %m = arith.mulf %s, %s : f64
      %t = arith.addf %m, %b : f64
      affine.store %t, %y[%j, %q] : memref<70x20xf64>
      affine.yield %t : f64
    }
  }
  return
}

// -----

// A complex number is a pair: its parts are two elements apart from the next one's.

// CHECK-LABEL: func.func @complex
// CHECK-COUNT-4: affine.load %{{.*}}, 1] : memref<20x70x2xf64>
// CHECK: vector.from_elements %{{.*}} : vector<4xf64>
func.func @complex(%a: memref<20x2xf64>, %b: memref<20x70x2xf64>, %c: memref<70xf64>, %zero: f64) attributes {avial.no_alias} {
  affine.for %j = 0 to 70 {
    %r:2 = affine.for %q = 0 to 20 iter_args(%s = %zero, %t = %zero) -> (f64, f64) {
      %ar = affine.load %a[%q, 0] : memref<20x2xf64>
      %ai = affine.load %a[%q, 1] : memref<20x2xf64>
      %br = affine.load %b[%q, %j, 0] : memref<20x70x2xf64>
      %bi = affine.load %b[%q, %j, 1] : memref<20x70x2xf64>
      %n = arith.negf %ai : f64
      %s0 = math.fma %ar, %br, %s : f64
      %s1 = math.fma %n, %bi, %s0 : f64
      %t0 = math.fma %ar, %bi, %t : f64
      %t1 = math.fma %ai, %br, %t0 : f64
      affine.yield %s1, %t1 : f64, f64
    }
    %u = arith.addf %r#0, %r#1 : f64
    affine.store %u, %c[%j] : memref<70xf64>
  }
  return
}
