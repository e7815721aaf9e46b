// RUN: -p version-by-distance
// ON: x86_64 avx fma

// What is loaded was stored so many iterations before as an array says; the store comes last.

// CHECK-LABEL: func.func @knapsack
// CHECK: %[[W:.*]] = memref.load %{{.*}}[%{{.*}}] : memref<9xindex>
// CHECK: arith.cmpi sle, %c4{{.*}}, %{{.*}} : index
// CHECK: arith.cmpi sle, %{{.*}}, %c0{{.*}} : index
// CHECK: %[[FAR:.*]] = arith.ori
// CHECK: scf.if %[[FAR]] {
// CHECK: scf.for
// CHECK: } {avial.safelen = 4 : i32}
// CHECK: } else {
// CHECK: scf.for
// CHECK-NOT: avial.safelen
// CHECK: return
func.func @knapsack(%D: memref<400xf64>, %at: memref<9xindex>, %k: index, %n: index) attributes {avial.no_alias} {
  %c1 = arith.constant 1 : index
  %w = memref.load %at[%k] : memref<9xindex>
  scf.for %i = %w to %n step %c1 {
    %j = arith.subi %i, %w : index
    %x = memref.load %D[%j] : memref<400xf64>
    %y = memref.load %D[%i] : memref<400xf64>
    %m = arith.maximumf %x, %y : f64
    memref.store %m, %D[%i] : memref<400xf64>
  }
  return
}

// -----

// What is loaded behind the store has to be far behind it.

// CHECK-LABEL: func.func @loads_last
// CHECK-NOT: arith.ori
// CHECK: scf.if
// CHECK: } {avial.safelen = 4 : i32}
// CHECK: return
func.func @loads_last(%D: memref<400xf64>, %B: memref<400xf64>, %w: index) attributes {avial.no_alias} {
  affine.for %i = 100 to 300 {
    %y = affine.load %B[%i] : memref<400xf64>
    affine.store %y, %D[%i] : memref<400xf64>
    %x = affine.load %D[%i - symbol(%w)] : memref<400xf64>
    affine.store %x, %B[%i] : memref<400xf64>
  }
  return
}

// -----

// Other rows never meet; in the same row far enough by its numbers.

// CHECK-LABEL: func.func @rows
// CHECK: scf.if
// CHECK: } {avial.safelen = 4 : i32}
func.func @rows(%D: memref<9x400xf64>, %r: index, %w: index) attributes {avial.no_alias} {
  affine.for %i = 100 to 300 {
    %x = affine.load %D[symbol(%r) - 1, %i - 1] : memref<9x400xf64>
    %y = affine.load %D[symbol(%r), %i - 8] : memref<9x400xf64>
    %z = affine.load %D[symbol(%r), %i + symbol(%w)] : memref<9x400xf64>
    %s = arith.addf %x, %y : f64
    %t = arith.addf %s, %z : f64
    affine.store %t, %D[symbol(%r), %i] : memref<9x400xf64>
  }
  return
}

// -----

// CHECK-LABEL: func.func @too_near_anyway
// CHECK-NOT: scf.if
// CHECK: return
func.func @too_near_anyway(%D: memref<400xf64>, %w: index) attributes {avial.no_alias} {
  affine.for %i = 100 to 300 {
    %x = affine.load %D[%i - 1] : memref<400xf64>
    %y = affine.load %D[%i - symbol(%w)] : memref<400xf64>
    %s = arith.addf %x, %y : f64
    affine.store %s, %D[%i] : memref<400xf64>
  }
  return
}

// -----

// Distances that are known LLVM knows; those that change from iteration to iteration nobody does.

// CHECK-LABEL: func.func @left
// CHECK-NOT: scf.if
// CHECK: return
func.func @left(%D: memref<400xf64>, %at: memref<400xindex>, %w: index) attributes {avial.no_alias} {
  affine.for %i = 100 to 300 {
    %x = affine.load %D[%i - 8] : memref<400xf64>
    affine.store %x, %D[%i] : memref<400xf64>
  }
  affine.for %i = 100 to 300 {
    %k = affine.load %at[%i] : memref<400xindex>
    %x = memref.load %D[%k] : memref<400xf64>
    affine.store %x, %D[%i] : memref<400xf64>
  }
  affine.for %i = 100 to 150 {
    %x = affine.load %D[2 * %i - symbol(%w)] : memref<400xf64>
    affine.store %x, %D[2 * %i] : memref<400xf64>
  }
  affine.for %i = 100 to 300 step 2 {
    %x = affine.load %D[%i - symbol(%w)] : memref<400xf64>
    affine.store %x, %D[%i] : memref<400xf64>
  }
  return
}

// -----

// Elements that are skipped now and then are fewer iterations apart than elements.

// CHECK-LABEL: func.func @uneven
// CHECK-NOT: scf.if
// CHECK: return
func.func @uneven(%D: memref<900xf64>, %w: index) attributes {avial.no_alias} {
  affine.for %i = 100 to 400 {
    %x = affine.load %D[%i + %i floordiv 2 - symbol(%w)] : memref<900xf64>
    affine.store %x, %D[%i + %i floordiv 2] : memref<900xf64>
  }
  return
}

// -----

// On a diagonal the next iteration's row is another one, and holds what this one stored.

// CHECK-LABEL: func.func @diagonal
// CHECK-NOT: scf.if
// CHECK: return
func.func @diagonal(%A: memref<400x400xf64>, %D: memref<400xf64>, %w: index) attributes {avial.no_alias} {
  affine.for %i = 100 to 300 {
    %x = affine.load %A[%i - 1, %i - 1] : memref<400x400xf64>
    %y = affine.load %D[%i - symbol(%w)] : memref<400xf64>
    %s = arith.addf %x, %y : f64
    affine.store %s, %A[%i, %i] : memref<400x400xf64>
    affine.store %y, %D[%i] : memref<400xf64>
  }
  return
}

// -----

// A size may be the distance.

// CHECK-LABEL: func.func @as_far_as_a_size
// CHECK: %[[W:.*]] = memref.dim %{{.*}}, %{{.*}} : memref<?xf64>
// CHECK: arith.cmpi sle, %c4{{.*}}, %{{.*}} : index
// CHECK: avial.safelen
func.func @as_far_as_a_size(%D: memref<400xf64>, %B: memref<?xf64>) attributes {avial.no_alias} {
  %c0 = arith.constant 0 : index
  %w = memref.dim %B, %c0 : memref<?xf64>
  affine.for %i = 100 to 300 {
    %x = affine.load %D[%i - symbol(%w)] : memref<400xf64>
    affine.store %x, %D[%i] : memref<400xf64>
  }
  return
}
