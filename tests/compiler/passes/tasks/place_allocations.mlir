// RUN: -p place-allocations

// A front end's one variable for two loops: each of them gets its own, and what stores nothing
// goes.

// CHECK-LABEL: func.func @one_variable_for_two_loops(
// CHECK-SAME: %[[A:.*]]: memref<5x7xf64>, %[[ZERO:.*]]: f64) {
// CHECK-NEXT: %[[U:.*]] = llvm.mlir.undef : f64
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 5 {
// CHECK-NEXT: %[[W:.*]] = memref.alloca() : memref<f64>
// CHECK-NEXT: memref.store %[[ZERO]], %[[W]][] : memref<f64>
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 7 {
// CHECK-NEXT: %[[O:.*]] = memref.load %[[W]][] : memref<f64>
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]], %[[J]]] : memref<5x7xf64>
// CHECK-NEXT: %[[S_0:.*]] = arith.addf %[[O]], %[[A_]] : f64
// CHECK-NEXT: memref.store %[[S_0]], %[[W]][] : memref<f64>
// CHECK-NEXT: }
// CHECK-NEXT: %[[S:.*]] = memref.load %[[W]][] : memref<f64>
// CHECK-NEXT: affine.store %[[S]], %[[A]][%[[I]], 0] : memref<5x7xf64>
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[I_:.*]] = 0 to 5 {
// CHECK-NEXT: %[[W_:.*]] = memref.alloca() : memref<f64>
// CHECK-NEXT: %[[A__:.*]] = affine.load %[[A]][%[[I_]], 1] : memref<5x7xf64>
// CHECK-NEXT: memref.store %[[A__]], %[[W_]][] : memref<f64>
// CHECK-NEXT: %[[S_:.*]] = memref.load %[[W_]][] : memref<f64>
// CHECK-NEXT: affine.store %[[S_]], %[[A]][%[[I_]], 2] : memref<5x7xf64>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @one_variable_for_two_loops(%A: memref<5x7xf64>, %zero: f64) {
  %w = memref.alloca() : memref<f64>
  %u = llvm.mlir.undef : f64
  memref.store %u, %w[] : memref<f64>
  affine.for %i = 0 to 5 {
    memref.store %zero, %w[] : memref<f64>
    affine.for %j = 0 to 7 {
      %o = memref.load %w[] : memref<f64>
      %a = affine.load %A[%i, %j] : memref<5x7xf64>
      %s = arith.addf %o, %a : f64
      memref.store %s, %w[] : memref<f64>
    }
    %s = memref.load %w[] : memref<f64>
    affine.store %s, %A[%i, 0] : memref<5x7xf64>
  }
  affine.for %i = 0 to 5 {
    %a = affine.load %A[%i, 1] : memref<5x7xf64>
    memref.store %a, %w[] : memref<f64>
    %s = memref.load %w[] : memref<f64>
    affine.store %s, %A[%i, 2] : memref<5x7xf64>
  }
  return
}

// -----

// What a control loop allocates again and again is there once, and is freed where the function
// ends.

// CHECK-LABEL: func.func @allocated_in_time(
// CHECK-SAME: %[[A:.*]]: memref<9xf64>) {
// CHECK-NEXT: %[[NEW:.*]] = memref.alloc() : memref<9xf64>
// CHECK-NEXT: affine.for %[[T:.*]] = 0 to 10 {
// CHECK-NEXT: affine.for %[[I:.*]] = 1 to 8 {
// CHECK-NEXT: %[[L:.*]] = affine.load %[[A]][%[[I]] - 1] : memref<9xf64>
// CHECK-NEXT: affine.store %[[L]], %[[NEW]][%[[I]]] : memref<9xf64>
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[I_:.*]] = 1 to 8 {
// CHECK-NEXT: %[[L_:.*]] = affine.load %[[NEW]][%[[I_]]] : memref<9xf64>
// CHECK-NEXT: affine.store %[[L_]], %[[A]][%[[I_]]] : memref<9xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @allocated_in_time(%A: memref<9xf64>) {
  affine.for %t = 0 to 10 {
    %new = memref.alloc() : memref<9xf64>
    affine.for %i = 1 to 8 {
      %l = affine.load %A[%i - 1] : memref<9xf64>
      affine.store %l, %new[%i] : memref<9xf64>
    }
    affine.for %i = 1 to 8 {
      %l = affine.load %new[%i] : memref<9xf64>
      affine.store %l, %A[%i] : memref<9xf64>
    }
    memref.dealloc %new : memref<9xf64>
  }
  return
}

// -----

// Memory that nobody reads is not there, and what the function frees itself is left to be freed.

// CHECK-LABEL: func.func @only_written(
// CHECK-SAME: %[[A:.*]]: memref<9xf64>, %[[X:.*]]: f64) {
// CHECK-NEXT: %[[C0:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[READ:.*]] = memref.alloc() : memref<9xf64>
// CHECK-NEXT: memref.store %[[X]], %[[READ]][%[[C0]]] : memref<9xf64>
// CHECK-NEXT: affine.for %[[I:.*]] = 1 to 9 {
// CHECK-NEXT: affine.store %[[X]], %[[READ]][%[[I]]] : memref<9xf64>
// CHECK-NEXT: %[[L:.*]] = affine.load %[[READ]][%[[I]] - 1] : memref<9xf64>
// CHECK-NEXT: affine.store %[[L]], %[[A]][%[[I]]] : memref<9xf64>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @only_written(%A: memref<9xf64>, %x: f64) {
  %c0 = arith.constant 0 : index
  %never = memref.alloc() : memref<9xf64>
  %read = memref.alloc() : memref<9xf64>
  memref.store %x, %never[%c0] : memref<9xf64>
  memref.store %x, %read[%c0] : memref<9xf64>
  affine.for %i = 1 to 9 {
    affine.store %x, %read[%i] : memref<9xf64>
    %l = affine.load %read[%i - 1] : memref<9xf64>
    affine.store %l, %A[%i] : memref<9xf64>
  }
  memref.dealloc %never : memref<9xf64>
  memref.dealloc %read : memref<9xf64>
  return
}

// -----

// What an iteration reads before it writes it is the one before's: it stays outside.

// CHECK-LABEL: func.func @leaves_what_is_handed_on(
// CHECK-SAME: %[[A:.*]]: memref<5xf64>, %[[ZERO:.*]]: f64) {
// CHECK-NEXT: %[[W:.*]] = memref.alloca() : memref<f64>
// CHECK-NEXT: memref.store %[[ZERO]], %[[W]][] : memref<f64>
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 5 {
// CHECK-NEXT: %[[O:.*]] = memref.load %[[W]][] : memref<f64>
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]]] : memref<5xf64>
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[O]], %[[A_]] : f64
// CHECK-NEXT: memref.store %[[S]], %[[W]][] : memref<f64>
// CHECK-NEXT: affine.store %[[S]], %[[A]][%[[I]]] : memref<5xf64>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_what_is_handed_on(%A: memref<5xf64>, %zero: f64) {
  %w = memref.alloca() : memref<f64>
  memref.store %zero, %w[] : memref<f64>
  affine.for %i = 0 to 5 {
    %o = memref.load %w[] : memref<f64>
    %a = affine.load %A[%i] : memref<5xf64>
    %s = arith.addf %o, %a : f64
    memref.store %s, %w[] : memref<f64>
    affine.store %s, %A[%i] : memref<5xf64>
  }
  return
}

// -----

// How long it is hangs on the loop: it is allocated there.

// CHECK-LABEL: func.func @leaves_sizes_of_the_loop(
// CHECK-SAME: %[[A:.*]]: memref<9xf64>, %[[N:.*]]: index) {
// CHECK-NEXT: %[[C0:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[C1:.*]] = arith.constant 1 : index
// CHECK-NEXT: scf.for %[[T:.*]] = %[[C1]] to %[[N]] step %[[C1]] {
// CHECK-NEXT: %[[NEW:.*]] = memref.alloc(%[[T]]) : memref<?xf64>
// CHECK-NEXT: %[[A_:.*]] = memref.load %[[A]][%[[C0]]] : memref<9xf64>
// CHECK-NEXT: memref.store %[[A_]], %[[NEW]][%[[C0]]] : memref<?xf64>
// CHECK-NEXT: %[[B:.*]] = memref.load %[[NEW]][%[[C0]]] : memref<?xf64>
// CHECK-NEXT: memref.store %[[B]], %[[A]][%[[C1]]] : memref<9xf64>
// CHECK-NEXT: memref.dealloc %[[NEW]] : memref<?xf64>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_sizes_of_the_loop(%A: memref<9xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c1 to %n step %c1 {
    %new = memref.alloc(%t) : memref<?xf64>
    %a = memref.load %A[%c0] : memref<9xf64>
    memref.store %a, %new[%c0] : memref<?xf64>
    %b = memref.load %new[%c0] : memref<?xf64>
    memref.store %b, %A[%c1] : memref<9xf64>
    memref.dealloc %new : memref<?xf64>
  }
  return
}
