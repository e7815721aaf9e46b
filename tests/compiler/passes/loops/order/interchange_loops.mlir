// RUN: -p interchange-loops
// ON: x86_64 avx fma

// Columns of B would be walked down: %j goes innermost, and the first values have a nest of their
// own.

// CHECK-LABEL: func.func @product(
// CHECK-SAME: %[[A:.*]]: memref<50x60xf64>, %[[B:.*]]: memref<60x70xf64>, %[[C:.*]]: memref<50x70xf64>, %[[X:.*]]: f64)
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 50 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 70 {
// CHECK-NEXT: affine.store %[[X]], %[[C]][%[[I]], %[[J]]] : memref<50x70xf64>
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[K:.*]] = 0 to 60 {
// CHECK-NEXT: affine.for %[[J_:.*]] = 0 to 70 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]], %[[K]]] : memref<50x60xf64>
// CHECK-NEXT: %[[B_:.*]] = affine.load %[[B]][%[[K]], %[[J_]]] : memref<60x70xf64>
// CHECK-NEXT: %[[C_:.*]] = affine.load %[[C]][%[[I]], %[[J_]]] : memref<50x70xf64>
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[A_]], %[[B_]] : f64
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[C_]], %[[P]] : f64
// CHECK-NEXT: affine.store %[[S]], %[[C]][%[[I]], %[[J_]]] : memref<50x70xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @product(%A: memref<50x60xf64>, %B: memref<60x70xf64>, %C: memref<50x70xf64>, %x: f64) attributes {avial.no_alias} {
  affine.for %i = 0 to 50 {
    affine.for %j = 0 to 70 {
      affine.store %x, %C[%i, %j] : memref<50x70xf64>
      affine.for %k = 0 to 60 {
        %a = affine.load %A[%i, %k] : memref<50x60xf64>
        %b = affine.load %B[%k, %j] : memref<60x70xf64>
        %c = affine.load %C[%i, %j] : memref<50x70xf64>
        %p = arith.mulf %a, %b : f64
        %s = arith.addf %c, %p : f64
        affine.store %s, %C[%i, %j] : memref<50x70xf64>
      }
    }
  }
  return
}

// -----

// A triangle keeps its shape.

// CHECK-DAG: #[[$MAP:.*]] = affine_map<(d0) -> (d0 + 1)>
// CHECK-LABEL: func.func @triangle(
// CHECK-SAME: %[[C:.*]]: memref<50x70xf64>, %[[X:.*]]: f64)
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 50 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to #[[$MAP]](%[[I]]) {
// CHECK-NEXT: affine.store %[[X]], %[[C]][%[[I]], %[[J]]] : memref<50x70xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @triangle(%C: memref<50x70xf64>, %x: f64) attributes {avial.no_alias} {
  affine.for %j = 0 to 50 {
    affine.for %i = affine_map<(d) -> (d)>(%j) to 50 {
      affine.store %x, %C[%i, %j] : memref<50x70xf64>
    }
  }
  return
}

// -----

// The exchange would turn the dependence (1, -1) around.

// CHECK-LABEL: func.func @leaves_what_depends(
// CHECK-SAME: %[[C:.*]]: memref<50x70xf64>)
// CHECK-NEXT: affine.for %[[J:.*]] = 1 to 70 {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 49 {
// CHECK-NEXT: %[[A:.*]] = affine.load %[[C]][%[[I]] + 1, %[[J]] - 1] : memref<50x70xf64>
// CHECK-NEXT: affine.store %[[A]], %[[C]][%[[I]], %[[J]]] : memref<50x70xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_what_depends(%C: memref<50x70xf64>) attributes {avial.no_alias} {
  affine.for %j = 1 to 70 {
    affine.for %i = 0 to 49 {
      %a = affine.load %C[%i + 1, %j - 1] : memref<50x70xf64>
      affine.store %a, %C[%i, %j] : memref<50x70xf64>
    }
  }
  return
}

// -----

// CHECK-LABEL: func.func @leaves_rows(
// CHECK-SAME: %[[C:.*]]: memref<50x70xf64>, %[[X:.*]]: f64)
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 50 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 70 {
// CHECK-NEXT: affine.store %[[X]], %[[C]][%[[I]], %[[J]]] : memref<50x70xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_rows(%C: memref<50x70xf64>, %x: f64) attributes {avial.no_alias} {
  affine.for %i = 0 to 50 {
    affine.for %j = 0 to 70 {
      affine.store %x, %C[%i, %j] : memref<50x70xf64>
    }
  }
  return
}

// -----

// A pass has given the loop its order.

// CHECK-LABEL: func.func @leaves_what_is_ordered(
// CHECK-SAME: %[[C:.*]]: memref<50x70xf64>, %[[X:.*]]: f64) attributes {avial.no_alias} {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 70 {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 50 {
// CHECK-NEXT: affine.store %[[X]], %[[C]][%[[I]], %[[J]]] : memref<50x70xf64>
// CHECK-NEXT: }
// CHECK-NEXT: } {avial.ordered}
// CHECK-NEXT: return
func.func @leaves_what_is_ordered(%C: memref<50x70xf64>, %x: f64) attributes {avial.no_alias} {
  affine.for %j = 0 to 70 {
    affine.for %i = 0 to 50 {
      affine.store %x, %C[%i, %j] : memref<50x70xf64>
    }
  } {avial.ordered}
  return
}

// -----

// Arrays that may be the same.

// CHECK-LABEL: func.func @leaves_aliases(
// CHECK-SAME: %[[C:.*]]: memref<50x70xf64>, %[[D:.*]]: memref<50x70xf64>) {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 70 {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 50 {
// CHECK-NEXT: %[[X:.*]] = affine.load %[[D]][%[[I]], %[[J]]] : memref<50x70xf64>
// CHECK-NEXT: affine.store %[[X]], %[[C]][%[[I]], %[[J]]] : memref<50x70xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_aliases(%C: memref<50x70xf64>, %D: memref<50x70xf64>) {
  affine.for %j = 0 to 70 {
    affine.for %i = 0 to 50 {
      %x = affine.load %D[%i, %j] : memref<50x70xf64>
      affine.store %x, %C[%i, %j] : memref<50x70xf64>
    }
  }
  return
}
