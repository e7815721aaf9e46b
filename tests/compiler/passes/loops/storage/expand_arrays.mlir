// RUN: -p expand-arrays

// Each %q makes the sums anew, so that each has a row; the last one is left in the array.

// CHECK-LABEL: func.func @sums
// CHECK: %[[SUM:.*]] = memref.alloca() : memref<30xf64>
// CHECK: affine.for %[[R:.*]] = 0 to 25
// CHECK: %[[ROWS:.*]] = memref.alloc() {alignment = 64 : i64} : memref<18x30xf64>
// CHECK: affine.for %[[Q:.*]] = 2 to 20
// CHECK: affine.store %{{.*}}, %[[ROWS]][%[[Q]] - 2, %{{.*}}] : memref<18x30xf64>
// CHECK: affine.load %[[ROWS]][%[[Q]] - 2, %{{.*}}] : memref<18x30xf64>
// CHECK: %[[LAST:.*]] = arith.constant 17 : index
// CHECK: memref.load %[[ROWS]][%[[LAST]], %{{.*}}]
// CHECK: memref.store %{{.*}}, %[[SUM]]
// CHECK: memref.dealloc %[[ROWS]]
func.func @sums(%A: memref<25x20x30xf64>, %C: memref<30x30xf64>, %out: memref<30xf64>) attributes {avial.no_alias} {
  %zero = arith.constant 0.0 : f64
  %sum = memref.alloca() : memref<30xf64>
  affine.for %r = 0 to 25 {
    affine.for %q = 2 to 20 {
      affine.for %p = 0 to 30 {
        affine.store %zero, %sum[%p] : memref<30xf64>
        affine.for %s = 0 to 30 {
          %old = affine.load %sum[%p] : memref<30xf64>
          %a = affine.load %A[%r, %q, %s] : memref<25x20x30xf64>
          %c = affine.load %C[%s, %p] : memref<30x30xf64>
          %new = math.fma %a, %c, %old : f64
          affine.store %new, %sum[%p] : memref<30xf64>
        }
      }
      affine.for %p = 0 to 30 {
        %new = affine.load %sum[%p] : memref<30xf64>
        affine.store %new, %A[%r, %q, %p] : memref<25x20x30xf64>
      }
    }
    affine.for %p = 0 to 30 {
      %new = affine.load %sum[%p] : memref<30xf64>
      affine.store %new, %out[%p] : memref<30xf64>
    }
  }
  return
}

// -----

// %sum[0] is what the iteration before left there.

// CHECK-LABEL: func.func @handed_on
// CHECK-NOT: memref.alloc()
func.func @handed_on(%A: memref<20x30xf64>, %C: memref<30x30xf64>) attributes {avial.no_alias} {
  %sum = memref.alloca() : memref<30xf64>
  affine.for %q = 0 to 20 {
    affine.for %p = 0 to 30 {
      affine.for %s = 0 to 30 {
        %old = affine.load %sum[%p] : memref<30xf64>
        %a = affine.load %A[%q, %s] : memref<20x30xf64>
        %c = affine.load %C[%s, %p] : memref<30x30xf64>
        %new = math.fma %a, %c, %old : f64
        affine.store %new, %sum[%p] : memref<30xf64>
      }
    }
    affine.for %p = 0 to 30 {
      %new = affine.load %sum[%p] : memref<30xf64>
      affine.store %new, %A[%q, %p] : memref<20x30xf64>
    }
  }
  return
}

// -----

// The last iteration leaves what an earlier one wrote into the array's upper half.

// CHECK-LABEL: func.func @half_is_left
// CHECK-NOT: memref.alloc()
func.func @half_is_left(%A: memref<20x30xf64>, %C: memref<30x30xf64>, %out: memref<30xf64>) attributes {avial.no_alias} {
  %zero = arith.constant 0.0 : f64
  %sum = memref.alloca() : memref<30xf64>
  affine.for %q = 0 to 20 {
    affine.for %p = 0 to affine_map<(d) -> (30 - d)>(%q) {
      affine.store %zero, %sum[%p] : memref<30xf64>
      affine.for %s = 0 to 30 {
        %old = affine.load %sum[%p] : memref<30xf64>
        %a = affine.load %A[%q, %s] : memref<20x30xf64>
        %c = affine.load %C[%s, %p] : memref<30x30xf64>
        %new = math.fma %a, %c, %old : f64
        affine.store %new, %sum[%p] : memref<30xf64>
      }
    }
    affine.for %p = 0 to affine_map<(d) -> (30 - d)>(%q) {
      %new = affine.load %sum[%p] : memref<30xf64>
      affine.store %new, %A[%q, %p] : memref<20x30xf64>
    }
  }
  affine.for %p = 0 to 30 {
    %new = affine.load %sum[%p] : memref<30xf64>
    affine.store %new, %out[%p] : memref<30xf64>
  }
  return
}

// -----

// No contraction comes of it.

// CHECK-LABEL: func.func @only_rows
// CHECK-NOT: memref.alloc()
func.func @only_rows(%A: memref<20x30xf64>) attributes {avial.no_alias} {
  %row = memref.alloca() : memref<30xf64>
  affine.for %q = 0 to 20 {
    affine.for %p = 0 to 30 {
      %a = affine.load %A[%q, %p] : memref<20x30xf64>
      affine.store %a, %row[%p] : memref<30xf64>
    }
    affine.for %p = 0 to 30 {
      %new = affine.load %row[%p] : memref<30xf64>
      affine.store %new, %A[%q, -%p + 29] : memref<20x30xf64>
    }
  }
  return
}
