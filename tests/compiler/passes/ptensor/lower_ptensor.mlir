// RUN: -p lower-ptensor

// A chain of operations is one nest with the reduction that takes it, straight into the result's array.

// CHECK-LABEL: func.func @fused(
// CHECK-NOT: memref.alloc
// CHECK: affine.store %{{.*}}, %[[S:[a-z0-9]+]][] : memref<f64>
// CHECK: affine.for %[[I:.*]] = 0 to 8 {
// CHECK-NEXT: %[[L:.*]] = affine.load %{{.*}}[%[[I]]] : memref<9xf64>
// CHECK-NEXT: %[[R:.*]] = affine.load %{{.*}}[%[[I]] + 1] : memref<9xf64>
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[L]], %[[R]] : f64
// CHECK-NEXT: %[[T:.*]] = affine.load %[[S]][] : memref<f64>
// CHECK-NEXT: %[[U:.*]] = arith.addf %[[T]], %[[P]] : f64
// CHECK-NEXT: affine.store %[[U]], %[[S]][] : memref<f64>
// CHECK-NOT: ptensor
func.func @fused(%A: memref<9xf64>, %s: memref<f64>) {
  %x = "ptensor.load"(%A) : (memref<9xf64>) -> !ptensor.ptensor<tensor<9xf64>, "default", unit>
  %l = "ptensor.view"(%x) {map = affine_map<(d0) -> (d0)>} : (!ptensor.ptensor<tensor<9xf64>, "default", unit>) -> !ptensor.ptensor<tensor<8xf64>, "default", unit>
  %r = "ptensor.view"(%x) {map = affine_map<(d0) -> (d0 + 1)>} : (!ptensor.ptensor<tensor<9xf64>, "default", unit>) -> !ptensor.ptensor<tensor<8xf64>, "default", unit>
  %p = "ptensor.binary"(%l, %r) {op = "multiply"} : (!ptensor.ptensor<tensor<8xf64>, "default", unit>, !ptensor.ptensor<tensor<8xf64>, "default", unit>) -> !ptensor.ptensor<tensor<8xf64>, "default", unit>
  %t = "ptensor.reduce"(%p) {op = "sum", axes = array<i64: 0>} : (!ptensor.ptensor<tensor<8xf64>, "default", unit>) -> !ptensor.ptensor<tensor<f64>, "default", unit>
  "ptensor.store"(%t, %s) : (!ptensor.ptensor<tensor<f64>, "default", unit>, memref<f64>) -> ()
  return
}

// -----

// An assignment that reads other elements of the array than it writes goes through memory of its own, and is a copy
// from there; one that reads the same does not.

// CHECK-LABEL: func.func @assigned(
// CHECK: %[[M:.*]]:2 = "dist.alloc_dtensor"(%{{.*}}) : (index) -> (i64, memref<8xf64>)
// CHECK: affine.store %{{.*}}, %[[M]]#1
// CHECK: %[[V:.*]]:2 = "dist.create_view"(%[[A:.*]], %{{.*}}, %{{.*}}, %{{.*}})
// CHECK-NEXT: "dist.copy_view"(%[[M]]#0, %[[V]]#0)
// CHECK: affine.for
// CHECK-NEXT: %[[X:.*]] = affine.load %[[A:.*]][%[[I:.*]]]
// CHECK-NEXT: %[[Y:.*]] = arith.addf %[[X]], %[[X]]
// CHECK-NEXT: affine.store %[[Y]], %[[A]][%[[I]]]
// CHECK: "dist.dealloc_dtensor"(%[[M]]#0)
func.func @assigned(%A: memref<9xf64>) {
  %x = "ptensor.load"(%A) : (memref<9xf64>) -> !ptensor.ptensor<tensor<9xf64>, "default", unit>
  %l = "ptensor.view"(%x) {map = affine_map<(d0) -> (d0)>} : (!ptensor.ptensor<tensor<9xf64>, "default", unit>) -> !ptensor.ptensor<tensor<8xf64>, "default", unit>
  "ptensor.insert"(%l, %A) {map = affine_map<(d0) -> (d0 + 1)>} : (!ptensor.ptensor<tensor<8xf64>, "default", unit>, memref<9xf64>) -> ()
  %y = "ptensor.load"(%A) : (memref<9xf64>) -> !ptensor.ptensor<tensor<9xf64>, "default", unit>
  %z = "ptensor.binary"(%y, %y) {op = "add"} : (!ptensor.ptensor<tensor<9xf64>, "default", unit>, !ptensor.ptensor<tensor<9xf64>, "default", unit>) -> !ptensor.ptensor<tensor<9xf64>, "default", unit>
  "ptensor.insert"(%z, %A) {map = affine_map<(d0) -> (d0)>} : (!ptensor.ptensor<tensor<9xf64>, "default", unit>, memref<9xf64>) -> ()
  return
}

// -----

// A sum over rows is one of blocks of rows, which are added up in their order, where they lie. An array that is not divided has memory of MLIR's.

// CHECK-LABEL: func.func @summed(
// CHECK: %[[P:.*]] = memref.alloc() : memref<12x40xf64>
// CHECK: affine.for %[[B:.*]] = 0 to 12 {
// CHECK: affine.for %[[I:.*]] = #[[LOW:.*]](%[[B]]) to #[[HIGH:.*]](%[[B]]) {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 40 {
// CHECK-NEXT: affine.load %{{.*}}[%[[I]], %[[J]]] : memref<128x40xf64>
// CHECK: } {avial.divided}
// CHECK: affine.load %[[P]][0, %{{.*}}]
// CHECK: } {avial.where_it_lies}
// CHECK-NEXT: affine.for %{{.*}} = 0 to 6 {
// CHECK: affine.load %[[P]][
// CHECK: } {avial.where_it_lies}
// CHECK-NOT: dist.
func.func @summed(%A: memref<128x40xf64>, %s: memref<40xf64>) {
  %x = "ptensor.load"(%A) : (memref<128x40xf64>) -> !ptensor.ptensor<tensor<128x40xf64>, "default", false>
  %t = "ptensor.reduce"(%x) {op = "sum", axes = array<i64: 0>} : (!ptensor.ptensor<tensor<128x40xf64>, "default", false>) -> !ptensor.ptensor<tensor<40xf64>, "default", false>
  "ptensor.store"(%t, %s) : (!ptensor.ptensor<tensor<40xf64>, "default", false>, memref<40xf64>) -> ()
  return
}

// -----

// A product of what lies by terms on both sides is one of blocks of terms. Of a small one the rows are added up one after
// the other, of what is cheap to compute again.

// CHECK-LABEL: func.func @product(
// CHECK: dist.alloc_dtensor{{.*}} memref<84x4x4xf64>
// CHECK: affine.for %[[B:.*]] = 0 to 84 {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 4 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 4 {
// CHECK-NEXT: arith.constant
// CHECK-NEXT: affine.store {{.*}}[%[[B]], %[[I]], %[[J]]]
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[K:.*]] = #{{.*}}(%[[B]]) to #{{.*}}(%[[B]]) {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 4 {
// CHECK-NEXT: %[[X:.*]] = affine.load %[[A:.*]][%[[K]], %[[I]]]
// CHECK-NEXT: arith.negf %[[X]]
// CHECK-NEXT: affine.load %[[A]][%[[K]], %[[J]]]
// CHECK: } {avial.divided}
// CHECK: "dist.finalize_reduce"
func.func @product(%A: memref<4096x4xf64>, %S: memref<4x4xf64>) {
  %x = "ptensor.load"(%A) : (memref<4096x4xf64>) -> !ptensor.ptensor<tensor<4096x4xf64>, "default", unit>
  %y = "ptensor.unary"(%x) {op = "negative"} : (!ptensor.ptensor<tensor<4096x4xf64>, "default", unit>) -> !ptensor.ptensor<tensor<4096x4xf64>, "default", unit>
  %t = "ptensor.view"(%y) {map = affine_map<(d0, d1) -> (d1, d0)>} : (!ptensor.ptensor<tensor<4096x4xf64>, "default", unit>) -> !ptensor.ptensor<tensor<4x4096xf64>, "default", unit>
  %p = "ptensor.matmul"(%t, %x) : (!ptensor.ptensor<tensor<4x4096xf64>, "default", unit>, !ptensor.ptensor<tensor<4096x4xf64>, "default", unit>) -> !ptensor.ptensor<tensor<4x4xf64>, "default", unit>
  "ptensor.store"(%p, %S) : (!ptensor.ptensor<tensor<4x4xf64>, "default", unit>, memref<4x4xf64>) -> ()
  return
}

// -----

// Few terms of a product are written out where they are wanted. The place of the least of a row is handed on with it.

// CHECK-LABEL: func.func @nearest(
// CHECK-NOT: alloc
// CHECK: affine.for %[[I:.*]] = 0 to 40 {
// CHECK: %[[P:.*]]:2 = affine.for %[[J:.*]] = 0 to 5 iter_args(%[[LEAST:.*]] = %{{.*}}, %[[AT:.*]] = %{{.*}}) -> (f64, i64) {
// CHECK-COUNT-2: arith.addf
// CHECK: %[[D:.*]] = arith.subf
// CHECK: arith.cmpf ugt, %[[LEAST]], %[[D]]
// CHECK: affine.yield
// CHECK: affine.store %[[P]]#1, %{{.*}}[%[[I]]]
func.func @nearest(%A: memref<40x2xf64>, %C: memref<5x2xf64>, %N: memref<5xf64>, %S: memref<40xi64>) {
  %x = "ptensor.load"(%A) : (memref<40x2xf64>) -> !ptensor.ptensor<tensor<40x2xf64>, "default", unit>
  %c = "ptensor.load"(%C) : (memref<5x2xf64>) -> !ptensor.ptensor<tensor<5x2xf64>, "default", unit>
  %n = "ptensor.load"(%N) : (memref<5xf64>) -> !ptensor.ptensor<tensor<5xf64>, "default", unit>
  %t = "ptensor.view"(%c) {map = affine_map<(d0, d1) -> (d1, d0)>} : (!ptensor.ptensor<tensor<5x2xf64>, "default", unit>) -> !ptensor.ptensor<tensor<2x5xf64>, "default", unit>
  %p = "ptensor.matmul"(%x, %t) : (!ptensor.ptensor<tensor<40x2xf64>, "default", unit>, !ptensor.ptensor<tensor<2x5xf64>, "default", unit>) -> !ptensor.ptensor<tensor<40x5xf64>, "default", unit>
  %d = "ptensor.binary"(%n, %p) {op = "subtract"} : (!ptensor.ptensor<tensor<5xf64>, "default", unit>, !ptensor.ptensor<tensor<40x5xf64>, "default", unit>) -> !ptensor.ptensor<tensor<40x5xf64>, "default", unit>
  %s = "ptensor.reduce"(%d) {op = "argmin", axes = array<i64: 1>} : (!ptensor.ptensor<tensor<40x5xf64>, "default", unit>) -> !ptensor.ptensor<tensor<40xi64>, "default", unit>
  "ptensor.store"(%s, %S) : (!ptensor.ptensor<tensor<40xi64>, "default", unit>, memref<40xi64>) -> ()
  return
}

// -----

// The same of the same values is computed once.

// CHECK-LABEL: func.func @twice(
// CHECK-COUNT-1: arith.addf
// CHECK-NOT: arith.addf
// CHECK: arith.divf
func.func @twice(%A: memref<9xf64>, %N: memref<f64>, %s: memref<f64>, %m: memref<f64>) {
  %x = "ptensor.load"(%A) : (memref<9xf64>) -> !ptensor.ptensor<tensor<9xf64>, "default", unit>
  %n = "ptensor.load"(%N) : (memref<f64>) -> !ptensor.ptensor<tensor<f64>, "default", unit>
  %t = "ptensor.reduce"(%x) {op = "sum", axes = array<i64: 0>} : (!ptensor.ptensor<tensor<9xf64>, "default", unit>) -> !ptensor.ptensor<tensor<f64>, "default", unit>
  %u = "ptensor.reduce"(%x) {op = "sum", axes = array<i64: 0>} : (!ptensor.ptensor<tensor<9xf64>, "default", unit>) -> !ptensor.ptensor<tensor<f64>, "default", unit>
  %v = "ptensor.binary"(%u, %n) {op = "divide"} : (!ptensor.ptensor<tensor<f64>, "default", unit>, !ptensor.ptensor<tensor<f64>, "default", unit>) -> !ptensor.ptensor<tensor<f64>, "default", unit>
  "ptensor.store"(%t, %s) : (!ptensor.ptensor<tensor<f64>, "default", unit>, memref<f64>) -> ()
  "ptensor.store"(%v, %m) : (!ptensor.ptensor<tensor<f64>, "default", unit>, memref<f64>) -> ()
  return
}

// -----

func.func @apart(%A: memref<4xf64>, %B: memref<4xf64>) {
  %x = "ptensor.load"(%A) : (memref<4xf64>) -> !ptensor.ptensor<tensor<4xf64>, "default", unit>
  // REFUSED: the arrays are in different places: one is on device 'cuda:0', one on 'default'
  %y = "ptensor.load"(%B) : (memref<4xf64>) -> !ptensor.ptensor<tensor<4xf64>, "cuda:0", unit>
  return
}

// -----

func.func @upside_down(%A: memref<4xf64>) {
  // REFUSED: dist = "sideways" does not say how a ptensor is divided
  %x = "ptensor.load"(%A) : (memref<4xf64>) -> !ptensor.ptensor<tensor<4xf64>, "default", "sideways">
  return
}
