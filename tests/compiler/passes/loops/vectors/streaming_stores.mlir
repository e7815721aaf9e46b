// RUN: -p streaming-stores{cache=1024}
// ON: x86_64 avx fma

// Three arrays of 8 KB, and the last cache has one: C, which is written and not read, goes past it.

// CHECK-LABEL: func.func @fills_an_array(
// CHECK-SAME: %[[A:.*]]: memref<4x256xf64>, %[[B:.*]]: memref<4x256xf64>, %[[C:.*]]: memref<4x256xf64>)
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 4 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 256 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]], %[[J]]] : memref<4x256xf64>
// CHECK-NEXT: %[[B_:.*]] = affine.load %[[B]][%[[I]], %[[J]]] : memref<4x256xf64>
// CHECK-NEXT: %[[C_:.*]] = arith.addf %[[A_]], %[[B_]] : f64
// CHECK-NEXT: affine.store %[[C_]], %[[C]][%[[I]], %[[J]]] {avial.streamed} : memref<4x256xf64>
// CHECK-NEXT: } {avial.independent}
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @fills_an_array(%A: memref<4x256xf64>, %B: memref<4x256xf64>, %C: memref<4x256xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 256 {
      %a = affine.load %A[%i, %j] : memref<4x256xf64>
      %b = affine.load %B[%i, %j] : memref<4x256xf64>
      %c = arith.addf %a, %b : f64
      affine.store %c, %C[%i, %j] : memref<4x256xf64>
    } {avial.independent}
  }
  return
}

// -----

// What is loaded as well is in the caches anyway.

// CHECK-LABEL: func.func @leaves_what_is_read(
// CHECK-SAME: %[[A:.*]]: memref<4x256xf64>, %[[C:.*]]: memref<4x256xf64>) attributes {avial.no_alias} {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 4 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 256 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]], %[[J]]] : memref<4x256xf64>
// CHECK-NEXT: %[[B:.*]] = affine.load %[[C]][%[[I]], %[[J]]] : memref<4x256xf64>
// CHECK-NEXT: %[[C_:.*]] = arith.addf %[[A_]], %[[B]] : f64
// CHECK-NEXT: affine.store %[[C_]], %[[C]][%[[I]], %[[J]]] : memref<4x256xf64>
// CHECK-NEXT: } {avial.independent}
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_what_is_read(%A: memref<4x256xf64>, %C: memref<4x256xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 256 {
      %a = affine.load %A[%i, %j] : memref<4x256xf64>
      %b = affine.load %C[%i, %j] : memref<4x256xf64>
      %c = arith.addf %a, %b : f64
      affine.store %c, %C[%i, %j] : memref<4x256xf64>
    } {avial.independent}
  }
  return
}

// -----

// All of them are in the cache when the next phase asks.

// CHECK-LABEL: func.func @leaves_small_arrays(
// CHECK-SAME: %[[A:.*]]: memref<4x16xf64>, %[[C:.*]]: memref<4x16xf64>) attributes {avial.no_alias} {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 4 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 16 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]], %[[J]]] : memref<4x16xf64>
// CHECK-NEXT: affine.store %[[A_]], %[[C]][%[[I]], %[[J]]] : memref<4x16xf64>
// CHECK-NEXT: } {avial.independent}
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_small_arrays(%A: memref<4x16xf64>, %C: memref<4x16xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 16 {
      %a = affine.load %A[%i, %j] : memref<4x16xf64>
      affine.store %a, %C[%i, %j] : memref<4x16xf64>
    } {avial.independent}
  }
  return
}

// -----

// The next step stores to the same elements.

// CHECK-LABEL: func.func @leaves_what_is_stored_again(
// CHECK-SAME: %[[A:.*]]: memref<4x256xf64>, %[[C:.*]]: memref<4x256xf64>) attributes {avial.no_alias} {
// CHECK-NEXT: affine.for %[[T:.*]] = 0 to 9 {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 4 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 256 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]], %[[J]]] : memref<4x256xf64>
// CHECK-NEXT: affine.store %[[A_]], %[[C]][%[[I]], %[[J]]] : memref<4x256xf64>
// CHECK-NEXT: } {avial.independent}
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_what_is_stored_again(%A: memref<4x256xf64>, %C: memref<4x256xf64>) attributes {avial.no_alias} {
  affine.for %t = 0 to 9 {
    affine.for %i = 0 to 4 {
      affine.for %j = 0 to 256 {
        %a = affine.load %A[%i, %j] : memref<4x256xf64>
        affine.store %a, %C[%i, %j] : memref<4x256xf64>
      } {avial.independent}
    }
  }
  return
}

// -----

// One row of many: the others are not written, and the array is not filled.

// CHECK-LABEL: func.func @leaves_parts(
// CHECK-SAME: %[[A:.*]]: memref<4x256xf64>, %[[C:.*]]: memref<4x256xf64>) attributes {avial.no_alias} {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 256 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][2, %[[J]]] : memref<4x256xf64>
// CHECK-NEXT: affine.store %[[A_]], %[[C]][2, %[[J]]] : memref<4x256xf64>
// CHECK-NEXT: } {avial.independent}
// CHECK-NEXT: return
func.func @leaves_parts(%A: memref<4x256xf64>, %C: memref<4x256xf64>) attributes {avial.no_alias} {
  affine.for %j = 0 to 256 {
    %a = affine.load %A[2, %j] : memref<4x256xf64>
    affine.store %a, %C[2, %j] : memref<4x256xf64>
  } {avial.independent}
  return
}
