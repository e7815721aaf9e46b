// RUN: -p mark-parallel

// Every element is written by one iteration.
// CHECK-LABEL: func.func @elementwise
// CHECK: affine.store
// CHECK-NEXT: }
// CHECK-NEXT: } {avial.parallel}
func.func @elementwise(%A: memref<9x9xf32>, %B: memref<9x9xf32>) attributes {avial.no_alias} {
  affine.for %i = 0 to 9 {
    affine.for %j = 0 to 9 {
      %a = affine.load %A[%j, %i] : memref<9x9xf32>
      affine.store %a, %B[%i, %j] : memref<9x9xf32>
    }
  }
  return
}

// -----

// Time goes on; what it computes in one step it computes at once.
// CHECK-LABEL: func.func @inside_of_time
// CHECK: affine.for
// CHECK: affine.for
// CHECK: } {avial.parallel}
// CHECK: affine.for
// CHECK: } {avial.parallel}
// CHECK-NEXT: }
func.func @inside_of_time(%A: memref<9xf32>, %B: memref<9xf32>) attributes {avial.no_alias} {
  affine.for %t = 0 to 4 {
    affine.for %i = 1 to 8 {
      %a = affine.load %A[%i - 1] : memref<9xf32>
      affine.store %a, %B[%i] : memref<9xf32>
    }
    affine.for %i = 1 to 8 {
      %b = affine.load %B[%i] : memref<9xf32>
      affine.store %b, %A[%i] : memref<9xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func.func @carried
// CHECK-NOT: avial.parallel
// CHECK: return
func.func @carried(%A: memref<9xf32>) {
  affine.for %i = 1 to 9 {
    %a = affine.load %A[%i - 1] : memref<9xf32>
    affine.store %a, %A[%i] : memref<9xf32>
  }
  return
}

// -----

// The order of the terms is the program's.
// CHECK-LABEL: func.func @sum
// CHECK-NOT: avial.parallel
// CHECK: return
func.func @sum(%A: memref<9xf32>, %S: memref<f32>) attributes {avial.no_alias} {
  affine.for %i = 0 to 9 {
    %a = affine.load %A[%i] : memref<9xf32>
    %s = affine.load %S[] : memref<f32>
    %t = arith.addf %s, %a : f32
    affine.store %t, %S[] : memref<f32>
  }
  return
}

// -----

// CHECK-LABEL: func.func @value_handed_on
// CHECK-NOT: avial.parallel
// CHECK: return
func.func @value_handed_on(%A: memref<9xf32>, %zero: f32) -> f32 {
  %s = affine.for %i = 0 to 9 iter_args(%t = %zero) -> f32 {
    %a = affine.load %A[%i] : memref<9xf32>
    %u = arith.addf %t, %a : f32
    affine.yield %u : f32
  }
  return %s : f32
}

// -----

// Memory that each iteration allocates is its own; that from outside is everybody's.
// CHECK-LABEL: func.func @scratch
// CHECK: affine.for
// CHECK: } {avial.parallel}
// CHECK: affine.for
// CHECK-NOT: avial.parallel
// CHECK: return
func.func @scratch(%A: memref<9xf32>) {
  affine.for %i = 0 to 9 {
    %own = memref.alloc() : memref<f32>
    %a = affine.load %A[%i] : memref<9xf32>
    affine.store %a, %own[] : memref<f32>
    %b = affine.load %own[] : memref<f32>
    affine.store %b, %A[%i] : memref<9xf32>
  }
  %shared = memref.alloc() : memref<f32>
  affine.for %i = 0 to 9 {
    %a = affine.load %A[%i] : memref<9xf32>
    affine.store %a, %shared[] : memref<f32>
    %b = affine.load %shared[] : memref<f32>
    affine.store %b, %A[%i] : memref<9xf32>
  }
  return
}

// -----

// Nobody knows which elements these are.
// CHECK-LABEL: func.func @scattered
// CHECK-NOT: avial.parallel
// CHECK: return
func.func @scattered(%A: memref<9xf32>, %P: memref<9xindex>) attributes {avial.no_alias} {
  %one = arith.constant 1.0 : f32
  affine.for %i = 0 to 9 {
    %p = affine.load %P[%i] : memref<9xindex>
    memref.store %one, %A[%p] : memref<9xf32>
  }
  return
}

// -----

// Who calls this may give it one array twice.
// CHECK-LABEL: func.func @perhaps_one_array
// CHECK-NOT: avial.parallel
// CHECK: return
func.func @perhaps_one_array(%A: memref<9xf32>, %B: memref<9xf32>) {
  affine.for %i = 1 to 9 {
    %a = affine.load %A[%i - 1] : memref<9xf32>
    affine.store %a, %B[%i] : memref<9xf32>
  }
  return
}

// -----

// CHECK-LABEL: func.func @calls
// CHECK-NOT: avial.parallel
// CHECK: return
func.func private @other(memref<9xf32>, index)
func.func @calls(%A: memref<9xf32>) {
  affine.for %i = 0 to 9 {
    func.call @other(%A, %i) : (memref<9xf32>, index) -> ()
  }
  return
}

// -----

// Who wrote it says so.
// CHECK-LABEL: func.func @declared
// CHECK: scf.parallel
// CHECK: } {avial.parallel}
func.func @declared(%A: memref<9xf32>, %P: memref<9xindex>, %n: index) attributes {avial.no_alias} {
  %zero = arith.constant 0 : index
  %step = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  scf.parallel (%i) = (%zero) to (%n) step (%step) {
    %p = memref.load %P[%i] : memref<9xindex>
    memref.store %one, %A[%p] : memref<9xf32>
  }
  return
}

// -----

// The pass that marked the inner loop has looked at the nest.
// CHECK-LABEL: func.func @marked_already
// CHECK: affine.for
// CHECK: affine.for
// CHECK: } {avial.parallel}
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @marked_already(%A: memref<9x9xf32>) {
  %one = arith.constant 1.0 : f32
  affine.for %i = 0 to 9 {
    affine.for %j = 0 to 9 {
      affine.store %one, %A[%i, %j] : memref<9x9xf32>
    } {avial.parallel}
  }
  return
}

// -----

// Rows one after the other, each element with those above it alone.
// CHECK-LABEL: func.func @columns
// CHECK: affine.load %{{.*}}[%{{.*}}] : memref<9xf32>
// CHECK: } {avial.parallel}
// CHECK-NEXT: } {avial.sliced}
func.func @columns(%A: memref<9x9xf32>, %x: memref<9xf32>, %y: memref<9xf32>) attributes {avial.no_alias} {
  affine.for %i = 0 to 9 {
    %f = affine.load %x[%i] : memref<9xf32>
    affine.for %j = 0 to 9 {
      %a = affine.load %A[%i, %j] : memref<9x9xf32>
      %s = affine.load %y[%j] : memref<9xf32>
      %p = arith.mulf %a, %f : f32
      %t = arith.addf %s, %p : f32
      affine.store %t, %y[%j] : memref<9xf32>
    }
  }
  return
}

// -----

// What is beside an element a row earlier is in another slice.
// CHECK-LABEL: func.func @beside
// CHECK-NOT: avial.sliced
// CHECK: return
func.func @beside(%A: memref<9x9xf32>) {
  affine.for %i = 1 to 9 {
    affine.for %j = 1 to 9 {
      %a = affine.load %A[%i - 1, %j - 1] : memref<9x9xf32>
      affine.store %a, %A[%i, %j] : memref<9x9xf32>
    }
  }
  return
}

// -----

// Two rows of one nest: what the first has written of a column the second reads of the same.
// CHECK-LABEL: func.func @two_rows
// CHECK: } {avial.parallel}
// CHECK: } {avial.parallel}
// CHECK-NEXT: } {avial.sliced}
func.func @two_rows(%A: memref<9x9xf32>, %y: memref<9xf32>) attributes {avial.no_alias} {
  affine.for %i = 0 to 9 {
    affine.for %j = 0 to 9 {
      %a = affine.load %A[%i, %j] : memref<9x9xf32>
      affine.store %a, %y[%j] : memref<9xf32>
    }
    affine.for %j = 2 to 7 {
      %s = affine.load %y[%j] : memref<9xf32>
      affine.store %s, %A[%i, %j] : memref<9x9xf32>
    }
  }
  return
}

// -----

// Between the rows all of a row has to be there.
// CHECK-LABEL: func.func @meeting
// CHECK-NOT: avial.sliced
// CHECK: return
func.func @meeting(%A: memref<9x9xf32>, %y: memref<9xf32>) attributes {avial.no_alias} {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 9 {
      %s = affine.load %y[%j] : memref<9xf32>
      affine.store %s, %A[%i, %j] : memref<9x9xf32>
    }
    %first = affine.load %A[%i, 3] : memref<9x9xf32>
    affine.for %j = 0 to 9 {
      affine.store %first, %y[%j] : memref<9xf32>
    }
  }
  return
}

// -----

// An iteration reads what the next one overwrites.
// CHECK-LABEL: func.func @overtaken
// CHECK-NOT: avial.parallel
// CHECK: return
func.func @overtaken(%A: memref<9xf32>) {
  affine.for %i = 0 to 8 {
    %a = affine.load %A[%i + 1] : memref<9xf32>
    affine.store %a, %A[%i] : memref<9xf32>
  }
  return
}

// -----

// The last one that writes an element is the one whose value stays.
// CHECK-LABEL: func.func @overwritten
// CHECK-NOT: avial.parallel
// CHECK: return
func.func @overwritten(%A: memref<9xf32>, %B: memref<9xf32>) attributes {avial.no_alias} {
  affine.for %i = 0 to 9 {
    %b = affine.load %B[%i] : memref<9xf32>
    affine.store %b, %A[%i floordiv 2] : memref<9xf32>
  }
  return
}

// -----

// What stands between the rows reads a column that is not the slice's.
// CHECK-LABEL: func.func @pivot
// CHECK-NOT: avial.sliced
// CHECK: return
func.func @pivot(%A: memref<9x9xf32>, %y: memref<9xf32>) attributes {avial.no_alias} {
  affine.for %i = 0 to 9 {
    %p = affine.load %y[%i] : memref<9xf32>
    affine.for %j = 0 to 9 {
      %a = affine.load %A[%i, %j] : memref<9x9xf32>
      %s = affine.load %y[%j] : memref<9xf32>
      %f = arith.mulf %a, %p : f32
      %t = arith.addf %s, %f : f32
      affine.store %t, %y[%j] : memref<9xf32>
    }
  }
  return
}

// -----

// A changes in the slices in which the nest before it went through it; what nobody slices stays.
// CHECK-LABEL: func.func @kept_columns
// CHECK: } {avial.parallel}
// CHECK-NEXT: } {avial.sliced}
// CHECK: affine.store %{{.*}} : memref<9x9xf32>
// CHECK-NEXT: } {avial.parallel}
// CHECK-NEXT: } {avial.sliced}
// CHECK: affine.store %{{.*}} : memref<9x9xf32>
// CHECK-NEXT: }
// CHECK-NEXT: } {avial.parallel}
func.func @kept_columns(%A: memref<9x9xf32>, %B: memref<9x9xf32>, %x: memref<9xf32>, %y: memref<9xf32>) attributes {avial.no_alias} {
  affine.for %i = 0 to 9 {
    affine.for %j = 0 to 9 {
      %a = affine.load %A[%i, %j] : memref<9x9xf32>
      %s = affine.load %y[%j] : memref<9xf32>
      %t = arith.addf %s, %a : f32
      affine.store %t, %y[%j] : memref<9xf32>
    }
  }
  affine.for %i = 0 to 9 {
    %f = affine.load %x[%i] : memref<9xf32>
    affine.for %j = 0 to 9 {
      affine.store %f, %A[%i, %j] : memref<9x9xf32>
    }
  }
  affine.for %i = 0 to 9 {
    %f = affine.load %x[%i] : memref<9xf32>
    affine.for %j = 0 to 9 {
      affine.store %f, %B[%i, %j] : memref<9x9xf32>
    }
  }
  return
}
