// RUN: -p expand-scalars,interchange-loops

// The sum that is carried gets an element for each %j, so that %j can be innermost everywhere.

// CHECK-LABEL: func.func @carried
// CHECK: %[[ROW:.*]] = memref.alloca() : memref<70xf64>
// CHECK: affine.for %[[I:.*]] = 0 to 50 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 70 {
// CHECK-NEXT: affine.store %{{.*}}, %[[ROW]][%[[J]]]
// CHECK: affine.for %[[K:.*]] = 0 to 60 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 70 {
// CHECK-NEXT: %[[OLD:.*]] = affine.load %[[ROW]][%[[J]]]
// CHECK: %[[NEXT:.*]] = arith.addf %[[OLD]]
// CHECK: affine.store %[[NEXT]], %[[ROW]][%[[J]]]
// CHECK: affine.for %[[J:.*]] = 0 to 70 {
// CHECK-NEXT: %[[SUM:.*]] = affine.load %[[ROW]][%[[J]]]
// CHECK-NEXT: affine.store %[[SUM]], %{{.*}}[%[[I]], %[[J]]]
func.func @carried(%A: memref<50x60xf64>, %B: memref<60x70xf64>, %C: memref<50x70xf64>) attributes {avial.no_alias} {
  %zero = arith.constant 0.0 : f64
  affine.for %i = 0 to 50 {
    affine.for %j = 0 to 70 {
      %sum = affine.for %k = 0 to 60 iter_args(%s = %zero) -> (f64) {
        %a = affine.load %A[%i, %k] : memref<50x60xf64>
        %b = affine.load %B[%k, %j] : memref<60x70xf64>
        %p = arith.mulf %a, %b : f64
        %next = arith.addf %s, %p : f64
        affine.yield %next : f64
      }
      affine.store %sum, %C[%i, %j] : memref<50x70xf64>
    }
  }
  return
}

// -----

// In a cell of memory it is no different; what the cell held last it holds again, and a loop that
// does not begin at 0 has no more elements than iterations.

// CHECK-LABEL: func.func @in_a_cell
// CHECK: %[[ROW:.*]] = memref.alloca() : memref<60xf64>
// CHECK: affine.for %{{.*}} = 0 to 50 {
// CHECK-NEXT: affine.for %[[J:.*]] = 10 to 70 {
// CHECK-NEXT: affine.store %{{.*}}, %[[ROW]][%[[J]] - 10]
// CHECK: affine.for %{{.*}} = 0 to 60 {
// CHECK-NEXT: affine.for %[[J:.*]] = 10 to 70 {
// CHECK: affine.store %{{.*}}, %[[ROW]][%[[J]] - 10]
// CHECK: affine.for
// CHECK: affine.for %[[J:.*]] = 10 to 70 {
// CHECK-NEXT: %[[LAST:.*]] = affine.load %[[ROW]][%[[J]] - 10]
// CHECK-NEXT: memref.store %[[LAST]], %{{.*}}[]
func.func @in_a_cell(%A: memref<50x60xf64>, %B: memref<60x70xf64>, %C: memref<50x70xf64>, %cell: memref<f64>) attributes {avial.no_alias} {
  %zero = arith.constant 0.0 : f64
  affine.for %i = 0 to 50 {
    affine.for %j = 10 to 70 {
      memref.store %zero, %cell[] : memref<f64>
      affine.for %k = 0 to 60 {
        %s = memref.load %cell[] : memref<f64>
        %a = affine.load %A[%i, %k] : memref<50x60xf64>
        %b = affine.load %B[%k, %j] : memref<60x70xf64>
        %p = arith.mulf %a, %b : f64
        %next = arith.addf %s, %p : f64
        memref.store %next, %cell[] : memref<f64>
      }
      %sum = memref.load %cell[] : memref<f64>
      affine.store %sum, %C[%i, %j] : memref<50x70xf64>
    }
  }
  return
}

// -----

// Walking rows already: it stays as it was.

// CHECK-LABEL: func.func @leaves_rows
// CHECK-NOT: memref.alloca
// CHECK: iter_args
func.func @leaves_rows(%A: memref<50x60xf64>, %x: memref<60xf64>, %y: memref<50xf64>) attributes {avial.no_alias} {
  %zero = arith.constant 0.0 : f64
  affine.for %i = 0 to 50 {
    %sum = affine.for %k = 0 to 60 iter_args(%s = %zero) -> (f64) {
      %a = affine.load %A[%i, %k] : memref<50x60xf64>
      %b = affine.load %x[%k] : memref<60xf64>
      %p = arith.mulf %a, %b : f64
      %next = arith.addf %s, %p : f64
      affine.yield %next : f64
    }
    affine.store %sum, %y[%i] : memref<50xf64>
  }
  return
}

// -----

// One iteration of %j reads what the one before left in the cell.

// CHECK-LABEL: func.func @leaves_what_is_handed_on
// CHECK-NOT: memref.alloca
func.func @leaves_what_is_handed_on(%A: memref<50x60xf64>, %B: memref<60x70xf64>, %C: memref<50x70xf64>, %cell: memref<f64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 50 {
    affine.for %j = 0 to 70 {
      affine.for %k = 0 to 60 {
        %s = memref.load %cell[] : memref<f64>
        %b = affine.load %B[%k, %j] : memref<60x70xf64>
        %next = arith.addf %s, %b : f64
        memref.store %next, %cell[] : memref<f64>
      }
      %sum = memref.load %cell[] : memref<f64>
      affine.store %sum, %C[%i, %j] : memref<50x70xf64>
    }
  }
  return
}

// -----

// What starts as an element and is stored back there stays in it: A is taken apart like by rows.

// CHECK-LABEL: func.func @from_its_element
// CHECK-NOT: memref.alloca
// CHECK: affine.for %[[I:.*]] = 0 to 50 {
// CHECK-NEXT: affine.for %[[K:.*]] = 0 to
// CHECK-NEXT: affine.for %[[J:.*]] = #map{{.*}}(%[[I]]) to 50 {
// CHECK: affine.load %[[A:.*]][%[[I]], %[[J]]]
// CHECK: affine.store %{{.*}}, %[[A]][%[[I]], %[[J]]]
func.func @from_its_element(%A: memref<50x50xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 50 {
    affine.for %j = affine_map<(d) -> (d)>(%i) to 50 {
      %first = affine.load %A[%i, %j] : memref<50x50xf64>
      %w = affine.for %k = 0 to affine_map<(d) -> (d)>(%i) iter_args(%s = %first) -> (f64) {
        %l = affine.load %A[%i, %k] : memref<50x50xf64>
        %u = affine.load %A[%k, %j] : memref<50x50xf64>
        %p = arith.mulf %l, %u : f64
        %next = arith.subf %s, %p : f64
        affine.yield %next : f64
      }
      affine.store %w, %A[%i, %j] : memref<50x50xf64>
    }
  }
  return
}

// -----

// One element for %j alone leaves no contraction; without block-contractions that is all that is asked for.

// CHECK-LABEL: func.func @one_row
// CHECK: memref.alloca() : memref<70xf64>
// CHECK-NOT: memref<50x70xf64>
// CHECK: return
func.func @one_row(%A: memref<50x60xf64>, %B: memref<60x70xf64>, %C: memref<70x50xf64>) attributes {avial.no_alias} {
  %zero = arith.constant 0.0 : f64
  affine.for %i = 0 to 50 {
    affine.for %j = 0 to 70 {
      %sum = affine.for %k = 0 to 60 iter_args(%s = %zero) -> (f64) {
        %a = affine.load %A[%i, %k] : memref<50x60xf64>
        %b = affine.load %B[%k, %j] : memref<60x70xf64>
        %next = math.fma %a, %b, %s : f64
        affine.yield %next : f64
      }
      affine.store %sum, %C[%j, %i] : memref<70x50xf64>
    }
  }
  return
}

// -----

// A sum over two loops has one element for both; what only one of them carries has its own.

// CHECK-LABEL: func.func @handed_through
// CHECK: %[[ROW:.*]] = memref.alloca() : memref<70xf64>
// CHECK-NEXT: %[[OWN:.*]] = memref.alloca() : memref<70xf64>
// CHECK-NOT: memref.alloca
// CHECK: affine.for %{{.*}} = 0 to 60 {
// CHECK-NOT: iter_args
// CHECK: affine.for %{{.*}} = 0 to 5 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 70 {
// CHECK-NEXT: affine.load %[[ROW]][%[[J]]]
// CHECK: affine.store %{{.*}}, %[[ROW]][%[[J]]]
// CHECK: affine.load %[[OWN]]
func.func @handed_through(%A: memref<50x60x5xf64>, %B: memref<60x5x70xf64>, %C: memref<50x70xf64>) attributes {avial.no_alias} {
  %zero = arith.constant 0.0 : f64
  affine.for %i = 0 to 50 {
    affine.for %j = 0 to 70 {
      %sum:2 = affine.for %k = 0 to 60 iter_args(%s = %zero, %m = %zero) -> (f64, f64) {
        %t = affine.for %q = 0 to 5 iter_args(%u = %s) -> (f64) {
          %a = affine.load %A[%i, %k, %q] : memref<50x60x5xf64>
          %b = affine.load %B[%k, %q, %j] : memref<60x5x70xf64>
          %next = math.fma %a, %b, %u : f64
          affine.yield %next : f64
        }
        %x = affine.load %B[%k, 0, %j] : memref<60x5x70xf64>
        %more = arith.addf %m, %x : f64
        affine.yield %t, %more : f64, f64
      }
      %both = arith.addf %sum#0, %sum#1 : f64
      affine.store %both, %C[%i, %j] : memref<50x70xf64>
    }
  }
  return
}
