// RUN: -p raise-to-affine

// CHECK-LABEL: func.func @shifted
// CHECK-SAME: %[[A:.*]]: memref<9x9xf32>, %[[N:.*]]: index)
// CHECK: affine.for %[[I:.*]] = 1 to %[[N]] step 2 {
// CHECK: affine.load %[[A]][%[[I]] - 1, %[[I]] * 2 + symbol(%[[N]]) + 3]
// CHECK: affine.store %{{.*}}, %[[A]][%[[I]], 4]
func.func @shifted(%A: memref<9x9xf32>, %n: index) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c1 to %n step %c2 {
    %j = arith.subi %i, %c1 : index
    %k = arith.muli %c2, %i : index
    %l = arith.addi %n, %c3 : index
    %m = arith.addi %k, %l : index
    %x = memref.load %A[%j, %m] : memref<9x9xf32>
    memref.store %x, %A[%i, %c4] : memref<9x9xf32>
  }
  return
}

// -----

// What is handed on stays so; a triangle between a size and a sum.

// CHECK-LABEL: func.func @triangle
// CHECK: %[[N:.*]] = memref.dim %{{.*}}, %{{.*}} : memref<?xf64>
// CHECK: affine.for %[[I:.*]] = 0 to %{{.*}} {
// CHECK: affine.for %[[J:.*]] = #{{.*}}(%[[I]]) to min #{{.*}}(%[[I]])[%{{.*}}] iter_args(%[[S:.*]] = %{{.*}}) -> (f64) {
// CHECK: %[[T:.*]] = arith.addf %[[S]]
// CHECK: affine.yield %[[T]] : f64
func.func @triangle(%A: memref<?xf64>, %B: memref<?xf64>, %zero: f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %n = memref.dim %A, %c0 : memref<?xf64>
  scf.for %i = %c0 to %n step %c1 {
    %first = arith.addi %i, %c1 : index
    %far = arith.addi %i, %c5 : index
    %last = arith.minsi %far, %n : index
    %sum = scf.for %j = %first to %last step %c1 iter_args(%s = %zero) -> (f64) {
      %x = memref.load %A[%j] : memref<?xf64>
      %t = arith.addf %s, %x : f64
      scf.yield %t : f64
    }
    memref.store %sum, %B[%i] : memref<?xf64>
  }
  return
}

// -----

// Integers of a front end: where they cannot wrap around, they are what they count.

// CHECK-LABEL: func.func @narrow
// CHECK: %[[N:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK: affine.for %[[I:.*]] = 0 to 100 {
// CHECK: affine.load %{{.*}}[%[[I]] + 1]
// CHECK: affine.load %{{.*}}[symbol(%[[N]])]
func.func @narrow(%A: memref<200xf32>, %n: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %one = arith.constant 1 : i32
  scf.for %i = %c0 to %c100 step %c1 {
    %k = arith.index_cast %i : index to i32
    %l = arith.addi %k, %one : i32
    %m = arith.index_cast %l : i32 to index
    %x = memref.load %A[%m] : memref<200xf32>
    %o = arith.index_cast %n : i32 to index
    %y = memref.load %A[%o] : memref<200xf32>
    %s = arith.addf %x, %y : f32
    memref.store %s, %A[%i] : memref<200xf32>
  }
  return
}

// -----

// A number from memory is no symbol where it will be read: in a task.

// CHECK-LABEL: func.func @from_memory
// CHECK: affine.for %[[I:.*]] = 0 to 100 {
// CHECK: %[[J:.*]] = arith.addi %[[I]]
// CHECK: memref.load %{{.*}}[%[[J]]]
// CHECK: affine.store %{{.*}}, %{{.*}}[%[[I]]]
// CHECK: scf.for
func.func @from_memory(%A: memref<200xf32>, %at: memref<1xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %n = memref.load %at[%c0] : memref<1xi32>
  %w = arith.index_cast %n : i32 to index
  scf.for %i = %c0 to %c100 step %c1 {
    %j = arith.addi %i, %w : index
    %x = memref.load %A[%j] : memref<200xf32>
    memref.store %x, %A[%i] : memref<200xf32>
  }
  scf.for %i = %c0 to %w step %c1 {
    %x = memref.load %A[%c0] : memref<200xf32>
    memref.store %x, %A[%i] : memref<200xf32>
  }
  return
}

// -----

// Steps, bounds and subscripts that only the run knows stay, and what counts by them; so do unsigned
// loops and what stands for no sum.

// CHECK-LABEL: func.func @stays
// CHECK: scf.for
// CHECK: memref.load
// CHECK: scf.for
// CHECK: memref.load
// CHECK: memref.store
// CHECK: scf.for unsigned
// CHECK: affine.for %[[I:.*]] = 0 to 8 {
// CHECK: %[[K:.*]] = affine.load %{{.*}}[%[[I]]] : memref<8xindex>
// CHECK: memref.load %{{.*}}[%[[K]]]
// CHECK: memref.store %{{.*}}, %{{.*}}[%{{.*}}]
func.func @stays(%A: memref<8xf32>, %at: memref<8xindex>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %n step %n {
    %x = memref.load %A[%i] : memref<8xf32>
    %end = memref.load %at[%i] : memref<8xindex>
    scf.for %j = %c0 to %end step %c1 {
      %y = memref.load %A[%j] : memref<8xf32>
      memref.store %y, %A[%i] : memref<8xf32>
    }
  }
  scf.for unsigned %i = %c0 to %n step %c1 {
  }
  scf.for %i = %c0 to %c8 step %c1 {
    %k = memref.load %at[%i] : memref<8xindex>
    %x = memref.load %A[%k] : memref<8xf32>
    %m = arith.remsi %k, %c3 : index
    memref.store %x, %A[%m] : memref<8xf32>
  }
  return
}

// -----

// So do loops that count in another type: affine ones have no other than index.

// CHECK-LABEL: func.func @counts_in_another_type
// CHECK: scf.for %{{.*}} : i32
func.func @counts_in_another_type(%A: memref<8xf32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %x = arith.constant 1.0 : f32
  scf.for %i = %c0 to %c8 step %c1 : i32 {
    %k = arith.index_cast %i : i32 to index
    memref.store %x, %A[%k] : memref<8xf32>
  }
  return
}

// -----

// So do loops as long as a window whose size is read from memory, however its shape is written.

// CHECK-LABEL: func.func @size_from_memory
// CHECK: scf.for
// CHECK-NOT: affine.for
func.func @size_from_memory(%A: memref<6x2xf32>, %at: memref<8xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = memref.load %at[%c2] : memref<8xindex>
  %w = memref.subview %A[2, 0] [%n, 2] [1, 1] : memref<6x2xf32> to memref<?x2xf32, strided<[2, 1], offset: 4>>
  %v = memref.collapse_shape %w [[0, 1]] : memref<?x2xf32, strided<[2, 1], offset: 4>> into memref<?xf32, strided<[1], offset: 4>>
  %size = memref.dim %v, %c0 : memref<?xf32, strided<[1], offset: 4>>
  scf.for %i = %c0 to %size step %c1 {
    %x = memref.load %v[%i] : memref<?xf32, strided<[1], offset: 4>>
    %y = arith.addf %x, %x : f32
    memref.store %y, %v[%i] : memref<?xf32, strided<[1], offset: 4>>
  }
  return
}
