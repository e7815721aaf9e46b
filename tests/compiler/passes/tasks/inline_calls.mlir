// RUN: -p inline-calls

// The body stands in place of the call; what all iterations have alike is computed before the loop,
// where affine loops may have it as a size.

// CHECK-LABEL: func.func @in_a_loop(
// CHECK-SAME: %[[A:.*]]: memref<8x8xf64>, %[[Y:.*]]: memref<8xf64>) {
// CHECK-NEXT: %[[C0:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[N:.*]] = memref.dim %[[A]], %[[C0]] : memref<8x8xf64>
// CHECK-NEXT: affine.for %[[I:.*]] = 1 to 8 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to %[[N]] {
// CHECK-NEXT: %[[X:.*]] = affine.load %[[A]][0, %[[J]]] : memref<8x8xf64>
// CHECK-NEXT: memref.store %[[X]], %[[A]][%[[I]], %[[J]]] : memref<8x8xf64>
// CHECK-NEXT: }
// CHECK-NEXT: %[[S:.*]] = memref.load %[[A]][%[[I]], %[[C0]]] : memref<8x8xf64>
// CHECK-NEXT: affine.store %[[S]], %[[Y]][%[[I]]] : memref<8xf64>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @in_a_loop(%A: memref<8x8xf64>, %y: memref<8xf64>) {
  affine.for %i = 1 to 8 {
    %s = func.call @row(%A, %i) : (memref<8x8xf64>, index) -> f64
    affine.store %s, %y[%i] : memref<8xf64>
  }
  return
}
func.func private @row(%a: memref<8x8xf64>, %k: index) -> f64 {
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : memref<8x8xf64>
  affine.for %j = 0 to %n {
    %x = affine.load %a[0, %j] : memref<8x8xf64>
    memref.store %x, %a[%k, %j] : memref<8x8xf64>
  }
  %s = memref.load %a[%k, %c0] : memref<8x8xf64>
  return %s : f64
}

// -----

// Functions that call others; unused copies stay, for MLIR to drop.

// CHECK-LABEL: func.func @calls_in_calls(
// CHECK-SAME: %[[A:.*]]: memref<2xf64>, %[[X:.*]]: f64) {
// CHECK-NEXT: %[[Y:.*]] = arith.addf %[[X]], %[[X]] : f64
// CHECK-NEXT: affine.store %[[Y]], %[[A]][0] : memref<2xf64>
// CHECK-NEXT: return
func.func @calls_in_calls(%A: memref<2xf64>, %x: f64) {
  func.call @stem(%A, %x) : (memref<2xf64>, f64) -> ()
  return
}
func.func private @leaf(%a: memref<2xf64>, %x: f64) {
  affine.store %x, %a[0] : memref<2xf64>
  return
}
func.func private @stem(%a: memref<2xf64>, %x: f64) {
  %y = arith.addf %x, %x : f64
  func.call @leaf(%a, %y) : (memref<2xf64>, f64) -> ()
  return
}

// -----

// No memory, no body, a circle, several blocks: these calls stay.

// CHECK-LABEL: func.func @leaves_others(
// CHECK-SAME: %[[A:.*]]: memref<2xf64>, %[[X:.*]]: f64, %[[C:.*]]: i1) -> f64 {
// CHECK-NEXT: %[[Y:.*]] = call @square(%[[X]]) : (f64) -> f64
// CHECK-NEXT: call @outside(%[[A]]) : (memref<2xf64>) -> ()
// CHECK-NEXT: call @itself(%[[A]]) : (memref<2xf64>) -> ()
// CHECK-NEXT: call @blocks(%[[A]], %[[C]]) : (memref<2xf64>, i1) -> ()
// CHECK-NEXT: return %[[Y]] : f64
func.func @leaves_others(%A: memref<2xf64>, %x: f64, %c: i1) -> f64 {
  %y = func.call @square(%x) : (f64) -> f64
  func.call @outside(%A) : (memref<2xf64>) -> ()
  func.call @itself(%A) : (memref<2xf64>) -> ()
  func.call @blocks(%A, %c) : (memref<2xf64>, i1) -> ()
  return %y : f64
}
func.func private @square(%x: f64) -> f64 {
  %y = arith.mulf %x, %x : f64
  return %y : f64
}
func.func private @outside(memref<2xf64>)
func.func private @itself(%a: memref<2xf64>) {
  %x = affine.load %a[0] : memref<2xf64>
  affine.store %x, %a[1] : memref<2xf64>
  func.call @itself(%a) : (memref<2xf64>) -> ()
  return
}
func.func private @blocks(%a: memref<2xf64>, %c: i1) {
  %x = affine.load %a[0] : memref<2xf64>
  cf.cond_br %c, ^one, ^two
^one:
  affine.store %x, %a[1] : memref<2xf64>
  cf.br ^two
^two:
  return
}

// -----

// %k is a symbol in the function, but none in a loop of its caller; at the top of it, it is.

// CHECK-LABEL: func.func @leaves_what_would_not_be_affine(
// CHECK-SAME: %[[A:.*]]: memref<8xf64>, %[[N:.*]]: index) {
// CHECK-NEXT: %[[C0:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[C1:.*]] = arith.constant 1 : index
// CHECK-NEXT: scf.for %[[I:.*]] = %[[C0]] to %[[N]] step %[[C1]] {
// CHECK-NEXT: %[[K:.*]] = arith.muli %[[I]], %[[I]] : index
// CHECK-NEXT: func.call @from(%[[A]], %[[K]]) : (memref<8xf64>, index) -> ()
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 4 {
// CHECK-NEXT: %[[X:.*]] = affine.load %[[A]][%[[J]] + symbol(%[[N]])] : memref<8xf64>
// CHECK-NEXT: affine.store %[[X]], %[[A]][%[[J]]] : memref<8xf64>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_what_would_not_be_affine(%A: memref<8xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %k = arith.muli %i, %i : index
    func.call @from(%A, %k) : (memref<8xf64>, index) -> ()
  }
  func.call @from(%A, %n) : (memref<8xf64>, index) -> ()
  return
}
func.func private @from(%a: memref<8xf64>, %k: index) {
  affine.for %j = 0 to 4 {
    %x = affine.load %a[%j + symbol(%k)] : memref<8xf64>
    affine.store %x, %a[%j] : memref<8xf64>
  }
  return
}

// -----

// Of a global every rank has its own: a call that stays must not write it.

memref.global "private" @state : memref<1xf64> = dense<0.0>
func.func @writes_what_no_rank_sees(%x: f64, %c: i1) {
  // REFUSED: @hides, whose calls are not inlined, uses a memref.global
  func.call @hides(%x, %c) : (f64, i1) -> ()
  return
}
func.func private @hides(%x: f64, %c: i1) {
  %s = memref.get_global @state : memref<1xf64>
  cf.cond_br %c, ^one, ^two
^one:
  affine.store %x, %s[0] : memref<1xf64>
  cf.br ^two
^two:
  return
}
