// RUN: -p promote-scalars

// What is summed stays in a register, and the array that is read beside it has rows apart from it.

// CHECK-LABEL: func.func @solves
// CHECK: affine.for %[[I:.*]] = 0 to 40 {
// CHECK-NEXT: affine.if #{{.*}}(%[[I]]) {
// CHECK-NEXT: %[[FIRST:.*]] = affine.load %{{.*}}[%[[I]]]
// CHECK-NEXT: %[[LAST:.*]] = affine.for %[[J:.*]] = 0 to {{.*}} iter_args(%[[X:.*]] = %[[FIRST]]) -> (f64) {
// CHECK-NEXT: affine.load %{{.*}}[%[[I]], %[[J]]]
// CHECK-NEXT: affine.load %{{.*}}[%[[J]]]
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: %[[REST:.*]] = arith.subf %[[X]],
// CHECK-NEXT: affine.yield %[[REST]] : f64
// CHECK: affine.store %[[LAST]], %{{.*}}[%[[I]]]
func.func @solves(%L: memref<40x40xf64>, %x: memref<40xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 40 {
    affine.for %j = 0 to affine_map<(d) -> (d)>(%i) {
      %xi = affine.load %x[%i] : memref<40xf64>
      %l = affine.load %L[%i, %j] : memref<40x40xf64>
      %xj = affine.load %x[%j] : memref<40xf64>
      %product = arith.mulf %l, %xj : f64
      %rest = arith.subf %xi, %product : f64
      affine.store %rest, %x[%i] : memref<40xf64>
    }
  }
  return
}

// -----

// The first element of the row is read by one iteration and written by another.

// CHECK-LABEL: func.func @leaves_what_moves_into_it
// CHECK: affine.for
// CHECK-NEXT: affine.for
// CHECK-NEXT: affine.load %{{.*}}[%{{.*}}, 3]
// CHECK-NOT: iter_args
func.func @leaves_what_moves_into_it(%A: memref<40x40xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 40 {
    affine.for %j = 0 to 13 {
      %a = affine.load %A[%i, 3] : memref<40x40xf64>
      affine.store %a, %A[%i, %j * 3] : memref<40x40xf64>
    }
  }
  return
}

// -----

// It reads what it writes elsewhere too, under a condition.

// CHECK-LABEL: func.func @leaves_what_a_branch_touches
// CHECK-NOT: iter_args
func.func @leaves_what_a_branch_touches(%A: memref<40xf64>, %B: memref<40xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 40 {
    affine.for %j = 0 to 40 {
      %a = affine.load %A[%i] : memref<40xf64>
      affine.if affine_set<(d) : (d - 5 >= 0)>(%j) {
        affine.store %a, %B[%j] : memref<40xf64>
        affine.store %a, %A[%i] : memref<40xf64>
      }
    }
  }
  return
}

// -----

// What the loop carried before it still carries, and where it does not run its result is the same.

// CHECK-LABEL: func.func @keeps_results
// CHECK: %[[SUM:.*]] = affine.if #{{.*}}()[%{{.*}}, %{{.*}}] -> f64 {
// CHECK: %[[TWO:.*]]:2 = affine.for %{{.*}} iter_args(%{{.*}} = %[[ZERO:.*]], %{{.*}} = %{{.*}}) -> (f64, f64) {
// CHECK: affine.store %[[TWO]]#1, %{{.*}}[7]
// CHECK: affine.yield %[[TWO]]#0
// CHECK: else
// CHECK-NEXT: affine.yield %[[ZERO]]
// CHECK: affine.store %[[SUM]], %{{.*}}[0]
func.func @keeps_results(%A: memref<40xf64>, %B: memref<40xf64>, %low: index, %high: index) attributes {avial.no_alias} {
  %zero = arith.constant 0.0 : f64
  %sum = affine.for %j = max affine_map<()[l] -> (0, l)>()[%low] to min affine_map<()[h] -> (40, h)>()[%high]
      iter_args(%s = %zero) -> (f64) {
    %a = affine.load %A[%j] : memref<40xf64>
    %next = arith.addf %s, %a : f64
    %b = affine.load %B[7] : memref<40xf64>
    %more = arith.addf %b, %next : f64
    affine.store %more, %B[7] : memref<40xf64>
    affine.yield %next : f64
  }
  affine.store %sum, %B[0] : memref<40xf64>
  return
}

// -----

// CHECK-LABEL: func.func @of_scf
// CHECK: %[[RUNS:.*]] = arith.cmpi slt, %[[LOW:.*]], %[[HIGH:.*]] : index
// CHECK-NEXT: scf.if %[[RUNS]] {
// CHECK-NEXT: %[[FIRST:.*]] = memref.load
// CHECK-NEXT: scf.for %{{.*}} = %[[LOW]] to %[[HIGH]] step %{{.*}} iter_args(%{{.*}} = %[[FIRST]])
// CHECK: memref.store
func.func @of_scf(%A: memref<40xf64>, %B: memref<40xf64>, %low: index, %high: index) attributes {avial.no_alias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %j = %low to %high step %c1 {
    %a = memref.load %A[%j] : memref<40xf64>
    %b = memref.load %B[%c0] : memref<40xf64>
    %next = arith.addf %b, %a : f64
    memref.store %next, %B[%c0] : memref<40xf64>
  }
  return
}

// -----

// One iteration writes the element that all read: before and behind it the element stays.

// CHECK-LABEL: func.func @cut_where_it_is_written
// CHECK: affine.if
// CHECK-NEXT: %[[TO:.*]] = affine.load %{{.*}}[%[[I:.*]], symbol(%[[K:.*]])]
// CHECK-NEXT: affine.for %{{.*}} = 0 to min #{{.*}}
// CHECK-NOT: affine.load %{{.*}}[%[[I]], symbol(%[[K]])]
// CHECK: arith.addf %[[TO]],
// CHECK: affine.for %{{.*}} = max {{.*}} to min
// CHECK: affine.load %{{.*}}[%[[I]], symbol(%[[K]])]
// CHECK: affine.if
// CHECK-NEXT: %[[TO:.*]] = affine.load %{{.*}}[%[[I]], symbol(%[[K]])]
// CHECK-NEXT: affine.for %{{.*}} = max #{{.*}} to 40
// CHECK: arith.addf %[[TO]],
func.func @cut_where_it_is_written(%path: memref<40x40xf64>, %k: index, %low: index) attributes {avial.no_alias} {
  affine.for %i = max affine_map<()[s] -> (0, s + 1)>()[%k] to 40 {
    affine.for %j = 0 to 40 {
      %direct = affine.load %path[%i, %j] : memref<40x40xf64>
      %to = affine.load %path[%i, symbol(%k)] : memref<40x40xf64>
      %from = affine.load %path[symbol(%k), %j] : memref<40x40xf64>
      %through = arith.addf %to, %from : f64
      %shorter = arith.minimumf %direct, %through : f64
      affine.store %shorter, %path[%i, %j] : memref<40x40xf64>
    }
  }
  return
}

// -----

// Whether the loop inside runs is the same for all rows: it is asked once.

// CHECK-LABEL: func.func @asks_once
// CHECK: affine.if #{{.*}}()[%{{.*}}] {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 40 {
// CHECK-NEXT: %[[X:.*]] = affine.load %{{.*}}[%[[I]]]
// CHECK-NEXT: affine.for
func.func @asks_once(%A: memref<40x40xf64>, %x: memref<40xf64>, %n: index) attributes {avial.no_alias} {
  affine.for %i = 0 to 40 {
    affine.for %j = 0 to %n {
      %xi = affine.load %x[%i] : memref<40xf64>
      affine.store %xi, %A[%i, %j] : memref<40x40xf64>
    }
  }
  return
}

// -----

// Beside something else that every row does, it stays where it is.

// CHECK-LABEL: func.func @asks_in_every_row
// CHECK: affine.for
// CHECK: affine.if
func.func @asks_in_every_row(%A: memref<40x40xf64>, %x: memref<40xf64>, %n: index, %y: memref<40xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 40 {
    %z = affine.load %x[0] : memref<40xf64>
    affine.store %z, %y[%i] : memref<40xf64>
    affine.for %j = 0 to %n {
      %xi = affine.load %x[%i] : memref<40xf64>
      affine.store %xi, %A[%i, %j] : memref<40x40xf64>
    }
  }
  return
}

// -----

// An element that the row met before is there, whether the loop runs or not.

// CHECK-LABEL: func.func @does_not_ask
// CHECK-NOT: affine.if
func.func @does_not_ask(%A: memref<40x40xf64>, %x: memref<40xf64>, %n: index, %y: memref<40xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 40 {
    %z = affine.load %x[%i] : memref<40xf64>
    affine.store %z, %y[%i] : memref<40xf64>
    affine.for %j = 0 to %n {
      %xi = affine.load %x[%i] : memref<40xf64>
      affine.store %xi, %A[%i, %j] : memref<40x40xf64>
    }
  }
  return
}

// -----

// What only the row's own sum is kept in is a value, and nothing in memory.

// CHECK-LABEL: func.func @own_sum
// CHECK-NOT: memref.alloca
// CHECK: affine.for %[[I:.*]] = 0 to 40 {
// CHECK-NEXT: %[[LAST:.*]] = affine.for %{{.*}} = 0 to 40 iter_args(%{{.*}} = %{{.*}}) -> (f64) {
// CHECK: affine.store %[[LAST]], %{{.*}}[%[[I]]]
func.func @own_sum(%A: memref<40x40xf64>, %y: memref<40xf64>) attributes {avial.no_alias} {
  %zero = arith.constant 0.0 : f64
  affine.for %i = 0 to 40 {
    %own = memref.alloca() : memref<f64>
    affine.store %zero, %own[] : memref<f64>
    affine.for %j = 0 to 40 {
      %old = affine.load %own[] : memref<f64>
      %a = affine.load %A[%i, %j] : memref<40x40xf64>
      %new = arith.addf %old, %a : f64
      affine.store %new, %own[] : memref<f64>
    }
    %sum = affine.load %own[] : memref<f64>
    affine.store %sum, %y[%i] : memref<40xf64>
  }
  return
}

// -----

// A branch that stores it keeps it in memory, and so does a load of what nobody has stored.

// CHECK-LABEL: func.func @kept_elements
// CHECK-COUNT-2: memref.alloca
func.func @kept_elements(%y: memref<40xf64>, %c: i1) attributes {avial.no_alias} {
  %zero = arith.constant 0.0 : f64
  affine.for %i = 0 to 40 {
    %branch = memref.alloca() : memref<f64>
    %early = memref.alloca() : memref<f64>
    affine.store %zero, %branch[] : memref<f64>
    scf.if %c {
      %a = affine.load %y[%i] : memref<40xf64>
      affine.store %a, %branch[] : memref<f64>
    }
    %b = affine.load %branch[] : memref<f64>
    %e = affine.load %early[] : memref<f64>
    affine.store %b, %early[] : memref<f64>
    %sum = arith.addf %b, %e : f64
    affine.store %sum, %y[%i] : memref<40xf64>
  }
  return
}
