// RUN: -p unroll-reductions

// Both loops of a window become terms of the element's sum, in their order.

// CHECK-LABEL: func.func private @window
// CHECK: affine.for %[[J:.*]] = 0 to 60 {
// CHECK-NOT: affine.for
// CHECK: affine.load %{{.*}}[%[[J]]]
// CHECK: %[[ONE:.*]] = arith.addf %{{.*}}, %{{.*}}
// CHECK: affine.load %{{.*}}[%[[J]] + 1]
// CHECK: %[[TWO:.*]] = arith.addf %[[ONE]], %{{.*}}
// CHECK: affine.load %{{.*}}[%[[J]] + 3]
// CHECK: %[[THREE:.*]] = arith.addf %[[TWO]], %{{.*}}
// CHECK: affine.load %{{.*}}[%[[J]] + 4]
// CHECK: %[[FOUR:.*]] = arith.addf %[[THREE]], %{{.*}}
// CHECK-NEXT: affine.store %[[FOUR]], %{{.*}}[%[[J]]]
func.func private @window(%A: memref<70xf64>, %B: memref<70xf64>, %zero: f64) attributes {avial.task = "S1"} {
  affine.for %j = 0 to 60 {
    %sum = affine.for %p = 0 to 2 iter_args(%s = %zero) -> (f64) {
      %row = affine.for %q = 0 to 2 iter_args(%r = %s) -> (f64) {
        %a = affine.load %A[%j + %p * 3 + %q] : memref<70xf64>
        %t = arith.addf %r, %a : f64
        affine.yield %t : f64
      }
      affine.yield %row : f64
    }
    affine.store %sum, %B[%j] : memref<70xf64>
  }
  return
}

// -----

// A sum in memory is one of the element too.

// CHECK-LABEL: func.func private @in_memory
// CHECK: affine.for %[[J:.*]] = 0 to 60 {
// CHECK-NOT: affine.for
// CHECK: return
func.func private @in_memory(%A: memref<70xf64>, %B: memref<70xf64>) attributes {avial.task = "S1"} {
  affine.for %j = 0 to 60 {
    affine.for %q = 0 to 8 {
      %a = affine.load %A[%j + %q] : memref<70xf64>
      %b = affine.load %B[%j] : memref<70xf64>
      %s = arith.addf %a, %b : f64
      affine.store %s, %B[%j] : memref<70xf64>
    }
  }
  return
}

// -----

// The sum goes on in the loop around: a longer one, that block-contractions may know.

// CHECK-LABEL: func.func private @of_a_longer_sum
// CHECK: affine.for %{{.*}} = 0 to 8 {
func.func private @of_a_longer_sum(%A: memref<70x8xf64>, %B: memref<70xf64>) attributes {avial.task = "S1"} {
  affine.for %i = 0 to 60 {
    affine.for %d = 0 to 60 {
      affine.for %q = 0 to 8 {
        %a = affine.load %A[%d, %q] : memref<70x8xf64>
        %b = affine.load %B[%i] : memref<70xf64>
        %s = arith.addf %a, %b : f64
        affine.store %s, %B[%i] : memref<70xf64>
      }
    }
  }
  return
}

// -----

// CHECK-LABEL: func.func private @carried_on
// CHECK: affine.for %{{.*}} = 0 to 8 iter_args
func.func private @carried_on(%A: memref<70x8xf64>, %B: memref<70xf64>, %zero: f64) attributes {avial.task = "S1"} {
  %sum = affine.for %d = 0 to 60 iter_args(%s = %zero) -> (f64) {
    %part = affine.for %q = 0 to 8 iter_args(%r = %s) -> (f64) {
      %a = affine.load %A[%d, %q] : memref<70x8xf64>
      %t = arith.addf %r, %a : f64
      affine.yield %t : f64
    }
    affine.yield %part : f64
  }
  affine.store %sum, %B[0] : memref<70xf64>
  return
}

// -----

// CHECK-LABEL: func.func private @to_different_elements
// CHECK: affine.for %{{.*}} = 0 to 4 {
func.func private @to_different_elements(%A: memref<70x8xf64>, %B: memref<70x8xf64>) attributes {avial.task = "S1"} {
  affine.for %j = 0 to 60 {
    affine.for %q = 0 to 4 {
      %a = affine.load %A[%j, %q] : memref<70x8xf64>
      affine.store %a, %B[%j, %q] : memref<70x8xf64>
    }
  }
  return
}

// -----

// A window along the row, one longer than is written out.

// CHECK-LABEL: func.func private @many
// CHECK: affine.for %{{.*}} = 0 to 33 iter_args
func.func private @many(%A: memref<99xf64>, %B: memref<70xf64>, %zero: f64) attributes {avial.task = "S1"} {
  affine.for %j = 0 to 60 {
    %sum = affine.for %q = 0 to 33 iter_args(%s = %zero) -> (f64) {
      %a = affine.load %A[%j + %q] : memref<99xf64>
      %t = arith.addf %s, %a : f64
      affine.yield %t : f64
    }
    affine.store %sum, %B[%j] : memref<70xf64>
  }
  return
}

// -----

// Not a window along a row: its terms lie side by side themselves.

// CHECK-LABEL: func.func private @many_of_a_row
// CHECK: affine.for %{{.*}} = 0 to 9 iter_args
func.func private @many_of_a_row(%A: memref<70x9xf64>, %B: memref<70xf64>, %zero: f64) attributes {avial.task = "S1"} {
  affine.for %j = 0 to 60 {
    %sum = affine.for %q = 0 to 9 iter_args(%s = %zero) -> (f64) {
      %a = affine.load %A[%j, %q] : memref<70x9xf64>
      %t = arith.addf %s, %a : f64
      affine.yield %t : f64
    }
    affine.store %sum, %B[%j] : memref<70xf64>
  }
  return
}

// -----

// CHECK-LABEL: func.func private @few_elements
// CHECK: affine.for %{{.*}} = 0 to 4 iter_args
func.func private @few_elements(%A: memref<70xf64>, %B: memref<70xf64>, %zero: f64) attributes {avial.task = "S1"} {
  affine.for %j = 0 to 3 {
    %sum = affine.for %q = 0 to 4 iter_args(%s = %zero) -> (f64) {
      %a = affine.load %A[%j + %q] : memref<70xf64>
      %t = arith.addf %s, %a : f64
      affine.yield %t : f64
    }
    affine.store %sum, %B[%j] : memref<70xf64>
  }
  return
}

// -----

// A small triangle for each element is written out, to where it has no iterations.

// CHECK-LABEL: func.func private @triangles
// CHECK: affine.for %[[B:.*]] = 0 to 70 {
// CHECK-NOT: affine.for
// CHECK: affine.load %{{.*}}[%[[B]], 1, 0]
// CHECK: affine.load %{{.*}}[%[[B]], 0, 0]
// CHECK: affine.store %{{.*}}, %{{.*}}[%[[B]], 1, 1]
// CHECK: affine.load %{{.*}}[%[[B]], 2, 0]
// CHECK: affine.store %{{.*}}, %{{.*}}[%[[B]], 2, 2]
// CHECK: affine.load %{{.*}}[%[[B]], 2, 1]
// CHECK: affine.store %{{.*}}, %{{.*}}[%[[B]], 2, 2]
// CHECK-NOT: affine.store
// CHECK: return
func.func private @triangles(%A: memref<70x3x3xf64>) attributes {avial.task = "S1"} {
  affine.for %b = 0 to 70 {
    affine.for %i = 0 to 3 {
      affine.for %k = 0 to affine_map<(d) -> (d)>(%i) {
        %x = affine.load %A[%b, %i, %k] : memref<70x3x3xf64>
        %y = affine.load %A[%b, %k, %k] : memref<70x3x3xf64>
        %z = affine.load %A[%b, %i, %i] : memref<70x3x3xf64>
        %p = arith.mulf %x, %y : f64
        %s = arith.subf %z, %p : f64
        affine.store %s, %A[%b, %i, %i] : memref<70x3x3xf64>
      }
    }
  }
  return
}

// -----

// Not one that is larger than a loop's body may be, nor one for a few elements, nor one whose ends
// nobody knows.

// CHECK-LABEL: func.func private @large_triangles
// CHECK-COUNT-7: affine.for
// CHECK: return
func.func private @large_triangles(%A: memref<70x99x99xf64>, %n: index) attributes {avial.task = "S1"} {
  affine.for %b = 0 to 70 {
    affine.for %i = 0 to 8 {
      affine.for %j = 0 to 8 {
        affine.for %k = 0 to affine_map<(d) -> (d)>(%i) {
          %x = affine.load %A[%b, %i, %k] : memref<70x99x99xf64>
          affine.store %x, %A[%b, %j, %i] : memref<70x99x99xf64>
        }
      }
    }
  }
  affine.for %b = 0 to 3 {
    affine.for %i = 0 to 3 {
      affine.for %k = 0 to affine_map<(d) -> (d)>(%i) {
        %x = affine.load %A[%b, %i, %k] : memref<70x99x99xf64>
        affine.store %x, %A[%b, %k, %i] : memref<70x99x99xf64>
      }
    }
  }
  return
}
