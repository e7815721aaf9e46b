// RUN: -p jam-for-stores

// All rows of a window, and all windows of it: loops of so few are gone, from the inside.

// CHECK-LABEL: func.func private @window
// CHECK: affine.for %[[I:.*]] = 0 to 60 {
// CHECK: affine.for %[[C:.*]] = 0 to 64 {
// CHECK-NEXT: affine.load %{{.*}}[%[[I]], %[[C]]]
// CHECK: affine.load %{{.*}}[%[[I]] + 1, %[[C]]]
// CHECK: affine.load %{{.*}}[%[[I]] + 3, %[[C]]]
// CHECK: affine.load %{{.*}}[%[[I]] + 4, %[[C]]]
// CHECK-NOT: affine.for
// CHECK: return
func.func private @window(%x: memref<70x64xf64>, %y: memref<70x64xf64>) attributes {avial.no_alias, avial.task = "S1"} {
  affine.for %i = 0 to 60 {
    affine.for %p = 0 to 2 {
      affine.for %q = 0 to 2 {
        affine.for %c = 0 to 64 {
          %a = affine.load %x[%i + %p * 3 + %q, %c] : memref<70x64xf64>
          %s = affine.load %y[%i, %c] : memref<70x64xf64>
          %t = arith.addf %s, %a : f64
          affine.store %t, %y[%i, %c] : memref<70x64xf64>
        }
      }
    }
  }
  return
}

// -----

// Rows of a loop whose window is gone are few themselves no more: they go a few at a time.

// CHECK-LABEL: func.func private @around
// CHECK: affine.for %{{.*}} = 0 to 60 step 4 {
// CHECK: affine.for %{{.*}} = 0 to 64 {
func.func private @around(%x: memref<70x64xf64>, %y: memref<64xf64>) attributes {avial.no_alias, avial.task = "S1"} {
  affine.for %i = 0 to 60 {
    affine.for %q = 0 to 2 {
      affine.for %c = 0 to 64 {
        %a = affine.load %x[%i + %q, %c] : memref<70x64xf64>
        %s = affine.load %y[%c] : memref<64xf64>
        %t = arith.addf %s, %a : f64
        affine.store %t, %y[%c] : memref<64xf64>
      }
    }
  }
  return
}

// -----

// Each window needs what the one before left of the columns that are still to come.

// CHECK-LABEL: func.func private @waits
// CHECK: affine.for %{{.*}} = 0 to 2 {
func.func private @waits(%y: memref<70xf64>) attributes {avial.no_alias, avial.task = "S1"} {
  affine.for %q = 0 to 2 {
    affine.for %c = 0 to 64 {
      %a = affine.load %y[%c + 1] : memref<70xf64>
      %s = affine.load %y[%c] : memref<70xf64>
      %t = arith.addf %s, %a : f64
      affine.store %t, %y[%c] : memref<70xf64>
    }
  }
  return
}
