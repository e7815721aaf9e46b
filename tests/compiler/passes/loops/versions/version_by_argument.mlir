// RUN: -p version-by-argument

// The greatest argument of some iterations is asked for; where that is within the limit, no function
// asks by itself. Few iterations are one strip.

// CHECK-LABEL: func.func @few
// CHECK: %[[MOST:.*]] = affine.for %{{.*}} = 0 to 100 iter_args(%[[M:.*]] = %{{.*}}) -> (i64) {
// CHECK-NEXT: %[[X:.*]] = affine.load
// CHECK-NEXT: %[[SIZE:.*]] = math.absf %[[X]]
// CHECK-NEXT: %[[BITS:.*]] = arith.bitcast %[[SIZE]] : f64 to i64
// CHECK-NEXT: %[[NEXT:.*]] = arith.maxui %[[M]], %[[BITS]] : i64
// CHECK: %[[FAR:.*]] = arith.cmpi ugt, %[[MOST]], %{{.*}} : i64
// CHECK: scf.if %[[FAR]] {
// CHECK: math.sin %{{.*}} {avial.expand = "fused"} : f64
// CHECK: avial.independent
// CHECK: } else {
// CHECK: math.sin %{{.*}} {avial.expand = "fused", avial.near} : f64
// CHECK: avial.independent
// CHECK-NOT: math.sin
func.func @few(%X: memref<100xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 100 {
    %x = affine.load %X[%i] : memref<100xf64>
    %y = math.sin %x {avial.expand = "fused"} : f64
    affine.store %y, %X[%i] : memref<100xf64>
  } {avial.independent}
  return
}

// -----

// What a loop hands on goes from strip to strip, and the last one ends where the loop does.

// CHECK-LABEL: func.func @sum
// CHECK: affine.for %[[C:.*]] = 3 to %{{.*}} step 1024 iter_args(%[[S:.*]] = %{{.*}}) -> (f32) {
// CHECK: affine.for %{{.*}} = #map{{.*}}(%[[C]]) to min #map{{.*}}(%[[C]])[%{{.*}}] step 2 iter_args
// CHECK: %[[T:.*]] = scf.if
// CHECK: affine.for {{.*}} iter_args(%{{.*}} = %[[S]]) -> (f32) {
// CHECK: } else {
// CHECK: avial.near
// CHECK: affine.yield %[[T]] : f32
func.func @sum(%X: memref<?xf32>, %n: index, %zero: f32, %s: memref<f32>) attributes {avial.no_alias} {
  %t = affine.for %i = 3 to %n step 2 iter_args(%a = %zero) -> f32 {
    %x = affine.load %X[%i] : memref<?xf32>
    %y = math.cos %x {avial.expand = "fused"} : f32
    %b = arith.addf %a, %y : f32
    affine.yield %b : f32
  }
  affine.store %t, %s[] : memref<f32>
  return
}

// -----

// Loops of scf, too; of two functions of which one hangs on the other it is asked for the first.

// CHECK-LABEL: func.func @one_of_another
// CHECK: scf.for %[[C:.*]] = %{{.*}} to %[[N:.*]] step %{{.*}} {
// CHECK: %[[END:.*]] = arith.minsi %{{.*}}, %[[N]]
// CHECK: scf.for %{{.*}} = %[[C]] to %[[END]]
// CHECK: scf.if
// CHECK: } else {
// CHECK: math.sin %{{.*}} {avial.expand = "fused", avial.near}
// CHECK: math.cos %{{.*}} {avial.expand = "fused"}
func.func @one_of_another(%X: memref<?xf64>, %Y: memref<?xf64>, %n: index) attributes {avial.no_alias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %X[%i] : memref<?xf64>
    %y = math.sin %x {avial.expand = "fused"} : f64
    %h = arith.divf %y, %x : f64
    %z = math.cos %h {avial.expand = "fused"} : f64
    memref.store %z, %Y[%i] : memref<?xf64>
  }
  return
}

// -----

// Nothing is asked of few iterations, of what hangs on a value that is handed on or that the loop
// stores, of steps that are not known, and where nobody chose code.

// CHECK-LABEL: func.func @stays
// CHECK-NOT: scf.if
// CHECK-NOT: avial.near
func.func @stays(%X: memref<100xf64>, %one: f64, %n: index) attributes {avial.no_alias} {
  %c0 = arith.constant 0 : index
  affine.for %i = 0 to 15 {
    %x = affine.load %X[%i] : memref<100xf64>
    %y = math.sin %x {avial.expand = "fused"} : f64
    affine.store %y, %X[%i] : memref<100xf64>
  } {avial.independent}
  %t = affine.for %i = 0 to 100 iter_args(%a = %one) -> f64 {
    %b = arith.addf %a, %one : f64
    %y = math.sin %b {avial.expand = "fused"} : f64
    affine.yield %y : f64
  }
  affine.for %i = 1 to 100 {
    %x = affine.load %X[%i - 1] : memref<100xf64>
    %y = math.sin %x {avial.expand = "fused"} : f64
    affine.store %y, %X[%i] : memref<100xf64>
  }
  affine.for %i = 0 to 100 {
    affine.store %t, %X[%i] : memref<100xf64>
    %x = affine.load %X[%i] : memref<100xf64>
    %y = math.sin %x {avial.expand = "fused"} : f64
    affine.store %y, %X[%i] : memref<100xf64>
  } {avial.independent}
  scf.for %i = %c0 to %n step %n {
    %x = memref.load %X[%i] : memref<100xf64>
    %y = math.sin %x {avial.expand = "fused"} : f64
    memref.store %y, %X[%i] : memref<100xf64>
  } {avial.independent}
  affine.for %i = 0 to 100 {
    %x = affine.load %X[%i] : memref<100xf64>
    %y = math.sin %x : f64
    affine.store %y, %X[%i] : memref<100xf64>
  } {avial.independent}
  return
}
