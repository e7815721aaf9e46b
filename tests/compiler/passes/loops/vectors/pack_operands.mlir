// RUN: -p pack-operands
// ON: x86_64 avx fma

// Elements of two columns of A lie five apart, and all rows load them: a table of two lines.

// CHECK-LABEL: func.func @far_apart(
// CHECK-SAME: %[[A:.*]]: memref<64x5xf64>, %[[B:.*]]: memref<40x18xf64>)
// CHECK-NEXT: %[[ALLOCA:.*]] = memref.alloca() {alignment = 64 : i64} : memref<2x16xf64>
// CHECK-NEXT: affine.for %[[J:.*]] = 1 to 17 {
// CHECK-NEXT: %[[V0:.*]] = affine.load %[[A]][%[[J]], 0] : memref<64x5xf64>
// CHECK-NEXT: affine.store %[[V0]], %[[ALLOCA]][0, %[[J]] - 1] : memref<2x16xf64>
// CHECK-NEXT: %[[V1:.*]] = affine.load %[[A]][%[[J]] + 2, 4] : memref<64x5xf64>
// CHECK-NEXT: affine.store %[[V1]], %[[ALLOCA]][1, %[[J]] - 1] : memref<2x16xf64>
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 40 {
// CHECK-NEXT: affine.for %[[J_:.*]] = 1 to 17 {
// CHECK-NEXT: %[[S:.*]] = affine.load %[[B]][%[[I]], %[[J_]]] : memref<40x18xf64>
// CHECK-NEXT: %[[X:.*]] = affine.load %[[ALLOCA]][0, %[[J_]] - 1] : memref<2x16xf64>
// CHECK-NEXT: %[[Y:.*]] = affine.load %[[ALLOCA]][1, %[[J_]] - 1] : memref<2x16xf64>
// CHECK-NEXT: %[[T:.*]] = arith.addf %[[S]], %[[X]] : f64
// CHECK-NEXT: %[[U:.*]] = arith.addf %[[T]], %[[Y]] : f64
// CHECK-NEXT: affine.store %[[U]], %[[B]][%[[I]], %[[J_]]] : memref<40x18xf64>
// CHECK-NEXT: } {avial.independent}
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @far_apart(%A: memref<64x5xf64>, %B: memref<40x18xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 40 {
    affine.for %j = 1 to 17 {
      %s = affine.load %B[%i, %j] : memref<40x18xf64>
      %x = affine.load %A[%j, 0] : memref<64x5xf64>
      %y = affine.load %A[%j + 2, 4] : memref<64x5xf64>
      %t = arith.addf %s, %x : f64
      %u = arith.addf %t, %y : f64
      affine.store %u, %B[%i, %j] : memref<40x18xf64>
    } {avial.independent}
  }
  return
}

// -----

// CHECK-LABEL: func.func @leaves_few_rows(
// CHECK-SAME: %[[A:.*]]: memref<64x5xf64>, %[[B:.*]]: memref<40x18xf64>) attributes {avial.no_alias} {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 15 {
// CHECK-NEXT: affine.for %[[J:.*]] = 1 to 17 {
// CHECK-NEXT: %[[X:.*]] = affine.load %[[A]][%[[J]], 0] : memref<64x5xf64>
// CHECK-NEXT: affine.store %[[X]], %[[B]][%[[I]], %[[J]]] : memref<40x18xf64>
// CHECK-NEXT: } {avial.independent}
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_few_rows(%A: memref<64x5xf64>, %B: memref<40x18xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 15 {
    affine.for %j = 1 to 17 {
      %x = affine.load %A[%j, 0] : memref<64x5xf64>
      affine.store %x, %B[%i, %j] : memref<40x18xf64>
    } {avial.independent}
  }
  return
}

// -----

// The table would be old.

// CHECK-LABEL: func.func @leaves_what_is_written(
// CHECK-SAME: %[[A:.*]]: memref<64x5xf64>, %[[B:.*]]: memref<40x18xf64>, %[[Z:.*]]: f64) attributes {avial.no_alias} {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 40 {
// CHECK-NEXT: affine.for %[[J:.*]] = 1 to 17 {
// CHECK-NEXT: %[[X:.*]] = affine.load %[[A]][%[[J]], 0] : memref<64x5xf64>
// CHECK-NEXT: affine.store %[[X]], %[[B]][%[[I]], %[[J]]] : memref<40x18xf64>
// CHECK-NEXT: } {avial.independent}
// CHECK-NEXT: }
// CHECK-NEXT: affine.store %[[Z]], %[[A]][0, 0] : memref<64x5xf64>
// CHECK-NEXT: return
func.func @leaves_what_is_written(%A: memref<64x5xf64>, %B: memref<40x18xf64>, %z: f64) attributes {avial.no_alias} {
  affine.for %i = 0 to 40 {
    affine.for %j = 1 to 17 {
      %x = affine.load %A[%j, 0] : memref<64x5xf64>
      affine.store %x, %B[%i, %j] : memref<40x18xf64>
    } {avial.independent}
  }
  affine.store %z, %A[0, 0] : memref<64x5xf64>
  return
}

// -----

// Row 64 is none: the loop may never run, the table would be filled in any case.

// CHECK-LABEL: func.func @leaves_what_is_outside(
// CHECK-SAME: %[[A:.*]]: memref<64x5xf64>, %[[B:.*]]: memref<40x18xf64>) attributes {avial.no_alias} {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 40 {
// CHECK-NEXT: affine.for %[[J:.*]] = 1 to 17 {
// CHECK-NEXT: %[[X:.*]] = affine.load %[[A]][%[[J]] * 4, 0] : memref<64x5xf64>
// CHECK-NEXT: affine.store %[[X]], %[[B]][%[[I]], %[[J]]] : memref<40x18xf64>
// CHECK-NEXT: } {avial.independent}
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_what_is_outside(%A: memref<64x5xf64>, %B: memref<40x18xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 40 {
    affine.for %j = 1 to 17 {
      %x = affine.load %A[%j * 4, 0] : memref<64x5xf64>
      affine.store %x, %B[%i, %j] : memref<40x18xf64>
    } {avial.independent}
  }
  return
}

// -----

// Side by side already.

// CHECK-LABEL: func.func @leaves_lines(
// CHECK-SAME: %[[A:.*]]: memref<5x64xf64>, %[[B:.*]]: memref<40x18xf64>) attributes {avial.no_alias} {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 40 {
// CHECK-NEXT: affine.for %[[J:.*]] = 1 to 17 {
// CHECK-NEXT: %[[X:.*]] = affine.load %[[A]][2, %[[J]]] : memref<5x64xf64>
// CHECK-NEXT: affine.store %[[X]], %[[B]][%[[I]], %[[J]]] : memref<40x18xf64>
// CHECK-NEXT: } {avial.independent}
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_lines(%A: memref<5x64xf64>, %B: memref<40x18xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 40 {
    affine.for %j = 1 to 17 {
      %x = affine.load %A[2, %j] : memref<5x64xf64>
      affine.store %x, %B[%i, %j] : memref<40x18xf64>
    } {avial.independent}
  }
  return
}
