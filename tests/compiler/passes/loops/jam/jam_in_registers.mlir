// RUN: -p jam-in-registers{rows=2}
// ON: x86_64 avx fma

// Two rows of sums in registers, as a whole vector and what is left over; one row, if it is odd.
// CHECK-LABEL: func.func @thin(
// CHECK: affine.for %{{.*}} = 0 to 9 step 2
// CHECK: affine.if
// CHECK-COUNT-4: vector.load %{{.*}} vector<{{[24]}}xf64>
// CHECK: affine.for %{{.*}} = 0 to 100 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}})
// CHECK: vector.broadcast %{{.*}} : f64 to vector<4xf64>
// CHECK: math.fma %{{.*}} : vector<4xf64>
// CHECK-NOT: vector.store
// CHECK: affine.yield
// CHECK-COUNT-4: vector.store %{{.*}} vector<{{[24]}}xf64>
// CHECK: } else {
// CHECK: affine.for
// CHECK-COUNT-2: vector.load
// CHECK-NOT: affine.store
// CHECK: return
func.func @thin(%A: memref<9x100xf64>, %B: memref<100x6xf64>, %C: memref<9x6xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 9 {
    affine.for %k = 0 to 100 {
      %a = affine.load %A[%i, %k] : memref<9x100xf64>
      affine.for %j = 0 to 6 {
        %b = affine.load %B[%k, %j] : memref<100x6xf64>
        %c = affine.load %C[%i, %j] : memref<9x6xf64>
        %s = math.fma %a, %b, %c : f64
        affine.store %s, %C[%i, %j] : memref<9x6xf64>
      } {avial.independent}
    }
  }
  return
}

// -----

// Rows that share nothing, whose bounds follow from the row, that are no vectors, or too long.
// CHECK-LABEL: func.func @others(
// CHECK-NOT: vector.
func.func @others(%A: memref<9x9xf64>, %B: memref<9x900xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 9 {
    affine.for %j = 0 to 6 {
      %a = affine.load %A[%i, %j] : memref<9x9xf64>
      affine.store %a, %B[%i, %j] : memref<9x900xf64>
    } {avial.independent}
  }
  affine.for %i = 0 to 9 {
    affine.for %k = 0 to affine_map<(i) -> (i)>(%i) {
      affine.for %j = 0 to 6 {
        %a = affine.load %A[%k, %j] : memref<9x9xf64>
        %b = affine.load %B[%i, %j] : memref<9x900xf64>
        %s = arith.addf %a, %b : f64
        affine.store %s, %B[%i, %j] : memref<9x900xf64>
      } {avial.independent}
    }
  }
  affine.for %i = 0 to 9 {
    affine.for %k = 0 to 9 {
      affine.for %j = 0 to 6 {
        %a = affine.load %A[%k, %j] : memref<9x9xf64>
        %b = affine.load %B[%i, %j * 9] : memref<9x900xf64>
        %s = arith.addf %a, %b : f64
        affine.store %s, %B[%i, %j * 9] : memref<9x900xf64>
      } {avial.independent}
    }
  }
  affine.for %i = 0 to 9 {
    affine.for %k = 0 to 9 {
      %a = affine.load %A[%k, %i] : memref<9x9xf64>
      affine.for %j = 0 to 900 {
        %b = affine.load %B[%i, %j] : memref<9x900xf64>
        %s = arith.addf %a, %b : f64
        affine.store %s, %B[%i, %j] : memref<9x900xf64>
      } {avial.independent}
    }
  }
  return
}
