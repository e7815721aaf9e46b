// RUN: -p fuse-loops
// ON: x86_64 avx fma

// A comes from memory once: the sum of each row, and the sum of each column.

// CHECK-LABEL: func.func @both_read_it(
// CHECK-SAME: %[[A:.*]]: memref<900x900xf64>, %[[X:.*]]: memref<900xf64>, %[[Y:.*]]: memref<900xf64>)
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 900 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 900 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]], %[[J]]] : memref<900x900xf64>
// CHECK-NEXT: %[[S:.*]] = affine.load %[[X]][%[[I]]] : memref<900xf64>
// CHECK-NEXT: %[[T:.*]] = arith.addf %[[S]], %[[A_]] : f64
// CHECK-NEXT: affine.store %[[T]], %[[X]][%[[I]]] : memref<900xf64>
// CHECK-NEXT: %[[A_0:.*]] = affine.load %[[A]][%[[I]], %[[J]]] : memref<900x900xf64>
// CHECK-NEXT: %[[S_1:.*]] = affine.load %[[Y]][%[[J]]] : memref<900xf64>
// CHECK-NEXT: %[[T_2:.*]] = arith.addf %[[S_1]], %[[A_0]] : f64
// CHECK-NEXT: affine.store %[[T_2]], %[[Y]][%[[J]]] : memref<900xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @both_read_it(%A: memref<900x900xf64>, %x: memref<900xf64>, %y: memref<900xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 900 {
    affine.for %j = 0 to 900 {
      %a = affine.load %A[%i, %j] : memref<900x900xf64>
      %s = affine.load %x[%i] : memref<900xf64>
      %t = arith.addf %s, %a : f64
      affine.store %t, %x[%i] : memref<900xf64>
    }
  }
  affine.for %i = 0 to 900 {
    affine.for %j = 0 to 900 {
      %a = affine.load %A[%i, %j] : memref<900x900xf64>
      %s = affine.load %y[%j] : memref<900xf64>
      %t = arith.addf %s, %a : f64
      affine.store %t, %y[%j] : memref<900xf64>
    }
  }
  return
}

// -----

// The second nest needs the first one's sum over all columns.

// CHECK-LABEL: func.func @leaves_what_is_needed_whole(
// CHECK-SAME: %[[A:.*]]: memref<900x900xf64>, %[[X:.*]]: memref<900xf64>, %[[Y:.*]]: memref<900xf64>)
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 900 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 900 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]], %[[J]]] : memref<900x900xf64>
// CHECK-NEXT: %[[S:.*]] = affine.load %[[X]][%[[I]]] : memref<900xf64>
// CHECK-NEXT: %[[T:.*]] = arith.addf %[[S]], %[[A_]] : f64
// CHECK-NEXT: affine.store %[[T]], %[[X]][%[[I]]] : memref<900xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[I_:.*]] = 0 to 900 {
// CHECK-NEXT: affine.for %[[J_:.*]] = 0 to 900 {
// CHECK-NEXT: %[[A__:.*]] = affine.load %[[A]][%[[I_]], %[[J_]]] : memref<900x900xf64>
// CHECK-NEXT: %[[S_:.*]] = affine.load %[[X]][%[[I_]]] : memref<900xf64>
// CHECK-NEXT: %[[T_:.*]] = arith.mulf %[[S_]], %[[A__]] : f64
// CHECK-NEXT: affine.store %[[T_]], %[[Y]][%[[J_]]] : memref<900xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_what_is_needed_whole(%A: memref<900x900xf64>, %x: memref<900xf64>, %y: memref<900xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 900 {
    affine.for %j = 0 to 900 {
      %a = affine.load %A[%i, %j] : memref<900x900xf64>
      %s = affine.load %x[%i] : memref<900xf64>
      %t = arith.addf %s, %a : f64
      affine.store %t, %x[%i] : memref<900xf64>
    }
  }
  affine.for %i = 0 to 900 {
    affine.for %j = 0 to 900 {
      %a = affine.load %A[%i, %j] : memref<900x900xf64>
      %s = affine.load %x[%i] : memref<900xf64>
      %t = arith.mulf %s, %a : f64
      affine.store %t, %y[%j] : memref<900xf64>
    }
  }
  return
}

// -----

// Nothing with an element for each iteration is in both.

// CHECK-LABEL: func.func @leaves_different_arrays(
// CHECK-SAME: %[[A:.*]]: memref<900x900xf64>, %[[B:.*]]: memref<900x900xf64>, %[[X:.*]]: f64) attributes {avial.no_alias} {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 900 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 900 {
// CHECK-NEXT: affine.store %[[X]], %[[A]][%[[I]], %[[J]]] : memref<900x900xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[I_:.*]] = 0 to 900 {
// CHECK-NEXT: affine.for %[[J_:.*]] = 0 to 900 {
// CHECK-NEXT: affine.store %[[X]], %[[B]][%[[I_]], %[[J_]]] : memref<900x900xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_different_arrays(%A: memref<900x900xf64>, %B: memref<900x900xf64>, %x: f64) attributes {avial.no_alias} {
  affine.for %i = 0 to 900 {
    affine.for %j = 0 to 900 {
      affine.store %x, %A[%i, %j] : memref<900x900xf64>
    }
  }
  affine.for %i = 0 to 900 {
    affine.for %j = 0 to 900 {
      affine.store %x, %B[%i, %j] : memref<900x900xf64>
    }
  }
  return
}

// -----

// One row less.

// CHECK-LABEL: func.func @leaves_other_bounds(
// CHECK-SAME: %[[A:.*]]: memref<900x900xf64>, %[[X:.*]]: memref<900xf64>) attributes {avial.no_alias} {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 900 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 900 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]], %[[J]]] : memref<900x900xf64>
// CHECK-NEXT: %[[S:.*]] = affine.load %[[X]][%[[I]]] : memref<900xf64>
// CHECK-NEXT: %[[T:.*]] = arith.addf %[[S]], %[[A_]] : f64
// CHECK-NEXT: affine.store %[[T]], %[[X]][%[[I]]] : memref<900xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[I_:.*]] = 0 to 899 {
// CHECK-NEXT: affine.for %[[J_:.*]] = 0 to 900 {
// CHECK-NEXT: %[[A__:.*]] = affine.load %[[A]][%[[I_]], %[[J_]]] : memref<900x900xf64>
// CHECK-NEXT: %[[T_:.*]] = arith.mulf %[[A__]], %[[A__]] : f64
// CHECK-NEXT: affine.store %[[T_]], %[[A]][%[[I_]], %[[J_]]] : memref<900x900xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_other_bounds(%A: memref<900x900xf64>, %x: memref<900xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 900 {
    affine.for %j = 0 to 900 {
      %a = affine.load %A[%i, %j] : memref<900x900xf64>
      %s = affine.load %x[%i] : memref<900xf64>
      %t = arith.addf %s, %a : f64
      affine.store %t, %x[%i] : memref<900xf64>
    }
  }
  affine.for %i = 0 to 899 {
    affine.for %j = 0 to 900 {
      %a = affine.load %A[%i, %j] : memref<900x900xf64>
      %t = arith.mulf %a, %a : f64
      affine.store %t, %A[%i, %j] : memref<900x900xf64>
    }
  }
  return
}

// -----

// Only the loops over rows are one: the second goes back along what the first has left in the
// cache.

// CHECK-LABEL: func.func @outermost_loops(
// CHECK-SAME: %[[A:.*]]: memref<400x370xi64>, %[[B:.*]]: memref<400x370xi64>, %[[C:.*]]: memref<400x370xi64>)
// CHECK-NEXT: %[[C0:.*]] = arith.constant 0 : i64
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 400 {
// CHECK-NEXT: %[[END:.*]] = affine.for %[[J:.*]] = 0 to 370 iter_args(%[[LAST:.*]] = %[[C0]]) -> (i64) {
// CHECK-NEXT: %[[X:.*]] = affine.load %[[A]][%[[I]], %[[J]]] : memref<400x370xi64>
// CHECK-NEXT: %[[Y:.*]] = arith.subi %[[X]], %[[LAST]] : i64
// CHECK-NEXT: affine.store %[[Y]], %[[B]][%[[I]], %[[J]]] : memref<400x370xi64>
// CHECK-NEXT: affine.yield %[[Y]] : i64
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[J_:.*]] = 0 to 370 {
// CHECK-NEXT: %[[X_:.*]] = affine.load %[[B]][%[[I]], -%[[J_]] + 369] : memref<400x370xi64>
// CHECK-NEXT: affine.store %[[X_]], %[[C]][%[[I]], -%[[J_]] + 369] : memref<400x370xi64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @outermost_loops(%A: memref<400x370xi64>, %B: memref<400x370xi64>, %C: memref<400x370xi64>) attributes {avial.no_alias} {
  %c0 = arith.constant 0 : i64
  affine.for %i = 0 to 400 {
    %end = affine.for %j = 0 to 370 iter_args(%last = %c0) -> (i64) {
      %x = affine.load %A[%i, %j] : memref<400x370xi64>
      %y = arith.subi %x, %last : i64
      affine.store %y, %B[%i, %j] : memref<400x370xi64>
      affine.yield %y : i64
    }
  }
  affine.for %i = 0 to 400 {
    affine.for %j = 0 to 370 {
      %x = affine.load %B[%i, -%j + 369] : memref<400x370xi64>
      affine.store %x, %C[%i, -%j + 369] : memref<400x370xi64>
    }
  }
  return
}
