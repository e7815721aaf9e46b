// RUN: -p coalesce-reductions

// Rows and columns of a channel are one sum; the channels have sums of their own.
// CHECK-LABEL: func.func @channels(
// CHECK: memref.collapse_shape {{.*}} : memref<16x8x7x7xf32> into memref<16x8x49xf32>
// CHECK: affine.for %[[N:.*]] = 0 to 16
// CHECK: affine.for %[[C:.*]] = 0 to 8
// CHECK: affine.for %[[I:.*]] = 0 to 49
// CHECK-NEXT: affine.load %{{.*}}[%[[N]], %[[C]], %[[I]]] : memref<16x8x49xf32>
// CHECK: affine.store %{{.*}}[%[[C]]] : memref<8xf32>
// CHECK-NOT: affine.for
// CHECK: return
func.func @channels(%A: memref<16x8x7x7xf32>, %m: memref<8xf32>) attributes {avial.no_alias} {
  affine.for %n = 0 to 16 {
    affine.for %c = 0 to 8 {
      affine.for %i = 0 to 7 {
        affine.for %j = 0 to 7 {
          %x = affine.load %A[%n, %c, %i, %j] : memref<16x8x7x7xf32>
          %s = affine.load %m[%c] : memref<8xf32>
          %t = arith.addf %s, %x : f32
          affine.store %t, %m[%c] : memref<8xf32>
        }
      }
    }
  }
  return
}

// -----

// Rows that are long enough, or a part of longer ones, and sums of each row stay.
// CHECK-LABEL: func.func @long(
// CHECK: affine.for %{{.*}} = 0 to 600
func.func @long(%A: memref<9x600xf32>, %m: memref<8xf32>) attributes {avial.no_alias} {
  affine.for %i = 0 to 9 {
    affine.for %j = 0 to 600 {
      %x = affine.load %A[%i, %j] : memref<9x600xf32>
      %s = affine.load %m[0] : memref<8xf32>
      %t = arith.addf %s, %x : f32
      affine.store %t, %m[0] : memref<8xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func.func @part(
// CHECK: affine.for %{{.*}} = 0 to 59
func.func @part(%A: memref<9x60xf32>, %m: memref<8xf32>) attributes {avial.no_alias} {
  affine.for %i = 0 to 9 {
    affine.for %j = 0 to 59 {
      %x = affine.load %A[%i, %j] : memref<9x60xf32>
      %s = affine.load %m[0] : memref<8xf32>
      %t = arith.addf %s, %x : f32
      affine.store %t, %m[0] : memref<8xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func.func @rows(
// CHECK: affine.for %{{.*}} = 0 to 60
func.func @rows(%A: memref<9x60xf32>, %m: memref<9xf32>) attributes {avial.no_alias} {
  affine.for %i = 0 to 9 {
    affine.for %j = 0 to 60 {
      %x = affine.load %A[%i, %j] : memref<9x60xf32>
      %s = affine.load %m[%i] : memref<9xf32>
      %t = arith.addf %s, %x : f32
      affine.store %t, %m[%i] : memref<9xf32>
    }
  }
  return
}

// -----

// What each row begins with is not done once for all.
// CHECK-LABEL: func.func @begun(
// CHECK: affine.for %{{.*}} = 0 to 60
func.func @begun(%A: memref<9x60xf32>, %m: memref<9xf32>, %x: f32) attributes {avial.no_alias} {
  affine.for %i = 0 to 9 {
    affine.store %x, %m[0] : memref<9xf32>
    affine.for %j = 0 to 60 {
      %a = affine.load %A[%i, %j] : memref<9x60xf32>
      %s = affine.load %m[0] : memref<9xf32>
      %t = arith.addf %s, %a : f32
      affine.store %t, %m[0] : memref<9xf32>
    }
  }
  return
}
