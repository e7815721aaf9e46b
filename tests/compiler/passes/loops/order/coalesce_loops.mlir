// RUN: -p coalesce-loops

// Rows of seven in images of seven rows: one of 49, then one of all channels, and then one of all
// there is, as it was still short.
// CHECK-LABEL: func.func @images(
// CHECK: memref.collapse_shape {{.*}} : memref<16x8x7x7xf32> into memref<16x8x49xf32>
// CHECK: memref.collapse_shape {{.*}} : memref<16x8x49xf32> into memref<16x392xf32>
// CHECK: affine.for %[[I:.*]] = 0 to 6272
// CHECK-NEXT: affine.load %{{.*}}[%[[I]]] : memref<6272xf32>
// CHECK: affine.store %{{.*}}[%[[I]]]
// CHECK-NEXT: {avial.independent}
// CHECK-NOT: affine.for
func.func @images(%A: memref<16x8x7x7xf32>, %B: memref<16x8x7x7xf32>) attributes {avial.no_alias} {
  %zero = arith.constant 0.0 : f32
  affine.for %n = 0 to 16 {
    affine.for %c = 0 to 8 {
      affine.for %i = 0 to 7 {
        affine.for %j = 0 to 7 {
          %x = affine.load %A[%n, %c, %i, %j] : memref<16x8x7x7xf32>
          %y = arith.maximumf %x, %zero : f32
          affine.store %y, %B[%n, %c, %i, %j] : memref<16x8x7x7xf32>
        } {avial.independent}
      }
    }
  }
  return
}

// -----

// A part of the rows, whose ends are not known; another array may be some rows away, and what no
// subscript goes along stays as it is.
// CHECK: #[[THRICE:.*]] = affine_map<()[s0] -> (s0 * 3)>
// CHECK-LABEL: func.func @part(
// CHECK-SAME: %[[LOW:.*]]: index, %[[HIGH:.*]]: index
// CHECK: affine.for %[[J:.*]] = #[[THRICE]]()[%[[LOW]]] to #[[THRICE]]()[%[[HIGH]]]
// CHECK-NEXT: affine.load %{{.*}}[%[[J]] - 3] : memref<?xf64>
// CHECK-NEXT: affine.load %{{.*}}[5, 2] : memref<9x3xf64>
// CHECK: affine.store %{{.*}}[%[[J]]] : memref<27xf64>
func.func @part(%low: index, %high: index, %A: memref<?x3xf64>, %B: memref<9x3xf64>,
                %C: memref<9x3xf64>) attributes {avial.no_alias} {
  affine.for %i = %low to %high {
    affine.for %j = 0 to 3 {
      %x = affine.load %A[%i - 1, %j] : memref<?x3xf64>
      %b = affine.load %B[5, 2] : memref<9x3xf64>
      %y = arith.addf %x, %b : f64
      affine.store %y, %C[%i, %j] : memref<9x3xf64>
    } {avial.independent}
  }
  return
}

// -----

// What is the same for all rows is loaded before them, if there is one for certain; so it is for all
// planes, of which there may be none.
// CHECK-LABEL: func.func @same(
// CHECK: affine.for %[[P:.*]] = 0 to
// CHECK-NEXT: affine.load %{{.*}}[%[[P]]] : memref<9xf64>
// CHECK-NEXT: arith.negf
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 35
// CHECK: affine.store %{{.*}}[%[[P]], %[[I]]]
func.func @same(%n: index, %m: memref<9xf64>, %A: memref<9x5x7xf64>) attributes {avial.no_alias} {
  affine.for %p = 0 to %n {
    affine.for %i = 0 to 5 {
      %x = affine.load %m[%p] : memref<9xf64>
      %y = arith.negf %x : f64
      affine.for %j = 0 to 7 {
        affine.store %y, %A[%p, %i, %j] : memref<9x5x7xf64>
      } {avial.independent}
    }
  }
  return
}

// -----

// Other columns than all of them; the other way round; with what belongs to one row or one column;
// a long row; a row whose number is used; rows that wait for the one before; what is computed for each
// row; what is loaded again, as it was written; what is loaded for perhaps no row.
// CHECK-LABEL: func.func @others(
// CHECK-NOT: collapse_shape
// CHECK: return
func.func @others(%A: memref<9x7xf64>, %B: memref<7x9xf64>, %v: memref<9xf64>, %w: memref<7xf64>,
                  %L: memref<9x700xf64>, %I: memref<9x7xindex>, %n: index)
    attributes {avial.no_alias} {
  affine.for %i = 0 to 9 {
    affine.for %j = 0 to 6 {
      %x = affine.load %A[%i, %j] : memref<9x7xf64>
      affine.store %x, %A[%i, %j] : memref<9x7xf64>
    } {avial.independent}
  }
  affine.for %i = 0 to 9 {
    affine.for %j = 0 to 7 {
      %x = affine.load %A[%i, %j] : memref<9x7xf64>
      affine.store %x, %B[%j, %i] : memref<7x9xf64>
    } {avial.independent}
  }
  affine.for %i = 0 to 9 {
    affine.for %j = 0 to 7 {
      %x = affine.load %v[%i] : memref<9xf64>
      affine.store %x, %A[%i, %j] : memref<9x7xf64>
    } {avial.independent}
  }
  affine.for %i = 0 to 9 {
    affine.for %j = 0 to 7 {
      %x = affine.load %w[%j] : memref<7xf64>
      affine.store %x, %A[%i, %j] : memref<9x7xf64>
    } {avial.independent}
  }
  affine.for %i = 0 to 9 {
    affine.for %j = 0 to 700 {
      %x = affine.load %L[%i, %j] : memref<9x700xf64>
      affine.store %x, %L[%i, %j] : memref<9x700xf64>
    } {avial.independent}
  }
  affine.for %i = 0 to 9 {
    affine.for %j = 0 to 7 {
      affine.store %i, %I[%i, %j] : memref<9x7xindex>
    } {avial.independent}
  }
  affine.for %i = 1 to 9 {
    affine.for %j = 0 to 7 {
      %x = affine.load %A[%i - 1, %j] : memref<9x7xf64>
      affine.store %x, %A[%i, %j] : memref<9x7xf64>
    } {avial.independent}
  }
  affine.for %i = 0 to 9 {
    %x = affine.load %v[%i] : memref<9xf64>
    affine.for %j = 0 to 7 {
      affine.store %x, %A[%i, %j] : memref<9x7xf64>
    } {avial.independent}
  }
  affine.for %i = 0 to 9 {
    %x = affine.load %A[3, 3] : memref<9x7xf64>
    %y = arith.negf %x : f64
    affine.for %j = 0 to 7 {
      affine.store %y, %A[%i, %j] : memref<9x7xf64>
    } {avial.independent}
  }
  affine.for %i = 0 to %n {
    %x = affine.load %v[%n] : memref<9xf64>
    affine.for %j = 0 to 7 {
      affine.store %x, %A[%i, %j] : memref<9x7xf64>
    } {avial.independent}
  }
  return
}
