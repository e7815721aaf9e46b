// RUN: -p reassociate-sums
// ON: x86_64 avx fma

// CHECK-LABEL: func.func private @in_memory(
// CHECK-SAME: avial.sums = 30 : i64, avial.task = "S1"}
// CHECK: %[[OLD:.*]] = affine.load %{{.*}}[%{{.*}}] : memref<20xf64>
// CHECK: %[[P:.*]] = arith.mulf %{{.*}}, %{{.*}} fastmath<contract> : f64
// CHECK: %[[NEW:.*]] = arith.addf %[[OLD]], %[[P]] fastmath<reassoc,contract> : f64
// CHECK: affine.store %[[NEW]]
func.func private @in_memory(%A: memref<20x30xf64>, %x: memref<30xf64>, %y: memref<20xf64>)
    attributes {avial.task = "S1"} {
  affine.for %i = 0 to 20 {
    affine.for %j = 0 to 30 {
      %s = affine.load %y[%i] : memref<20xf64>
      %a = affine.load %A[%i, %j] : memref<20x30xf64>
      %b = affine.load %x[%j] : memref<30xf64>
      %t = math.fma %a, %b, %s : f64
      affine.store %t, %y[%i] : memref<20xf64>
    }
  }
  return
}

// -----

// CHECK-LABEL: func.func private @handed_on(
// CHECK-SAME: avial.sums = 19 : i64
// CHECK: arith.subf %{{.*}}, %{{.*}} fastmath<reassoc,contract> : f32
// CHECK: arith.mulf %{{.*}}, %{{.*}} fastmath<reassoc,contract> : f32
func.func private @handed_on(%A: memref<20xf32>, %y: memref<20x2xf32>)
    attributes {avial.task = "S1"} {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  affine.for %i = 0 to 20 {
    %s:2 = affine.for %j = 0 to affine_map<(d0) -> (d0)>(%i)
        iter_args(%d = %zero, %p = %one) -> (f32, f32) {
      %a = affine.load %A[%j] : memref<20xf32>
      %e = arith.subf %d, %a : f32
      %q = arith.mulf %a, %p : f32
      affine.yield %e, %q : f32, f32
    }
    affine.store %s#0, %y[%i, 0] : memref<20x2xf32>
    affine.store %s#1, %y[%i, 1] : memref<20x2xf32>
  }
  return
}

// -----

// Each lane of a vector has an element of its own: the order costs nothing.
// CHECK-LABEL: func.func private @leaves_sums_over_other_loops(
// CHECK-NOT: fastmath
func.func private @leaves_sums_over_other_loops(%A: memref<20x30xf64>, %y: memref<30xf64>)
    attributes {avial.task = "S1"} {
  affine.for %i = 0 to 20 {
    affine.for %j = 0 to 30 {
      %s = affine.load %y[%j] : memref<30xf64>
      %a = affine.load %A[%i, %j] : memref<20x30xf64>
      %t = arith.addf %s, %a : f64
      affine.store %t, %y[%j] : memref<30xf64>
    }
  }
  return
}

// -----

// CHECK-LABEL: func.func private @leaves_what_is_looked_at_halfway(
// CHECK-NOT: fastmath
func.func private @leaves_what_is_looked_at_halfway(%A: memref<30xf64>, %y: memref<30xf64>)
    attributes {avial.task = "S1"} {
  %zero = arith.constant 0.0 : f64
  %s = affine.for %j = 0 to 30 iter_args(%d = %zero) -> (f64) {
    %a = affine.load %A[%j] : memref<30xf64>
    %e = arith.addf %d, %a : f64
    affine.store %e, %y[%j] : memref<30xf64>
    affine.yield %e : f64
  }
  return
}

// -----

// A recurrence beside the sum: there are no vectors to win.
// CHECK-LABEL: func.func private @leaves_loops_that_stay_in_order(
// CHECK-NOT: fastmath
func.func private @leaves_loops_that_stay_in_order(%A: memref<30xf64>, %y: memref<f64>)
    attributes {avial.task = "S1"} {
  affine.for %j = 1 to 30 {
    %s = affine.load %y[] : memref<f64>
    %a = affine.load %A[%j - 1] : memref<30xf64>
    %t = arith.addf %s, %a : f64
    affine.store %t, %y[] : memref<f64>
    %r = math.sqrt %a : f64
    affine.store %r, %A[%j] : memref<30xf64>
  }
  return
}

// -----

// CHECK-LABEL: func.func private @leaves_integers_minima_and_histograms(
// CHECK-NOT: fastmath
func.func private @leaves_integers_minima_and_histograms(%A: memref<30xi32>, %B: memref<30xf64>,
    %n: memref<i32>, %m: memref<f64>, %h: memref<30xf64>) attributes {avial.task = "S1"} {
  %one = arith.constant 1.0 : f64
  affine.for %j = 0 to 30 {
    %s = affine.load %n[] : memref<i32>
    %a = affine.load %A[%j] : memref<30xi32>
    %t = arith.addi %s, %a : i32
    affine.store %t, %n[] : memref<i32>
    %u = affine.load %m[] : memref<f64>
    %b = affine.load %B[%j] : memref<30xf64>
    %v = arith.minimumf %u, %b : f64
    affine.store %v, %m[] : memref<f64>
  }
  affine.for %j = 0 to 30 {
    %a = affine.load %A[%j] : memref<30xi32>
    %k = arith.index_cast %a : i32 to index
    %s = memref.load %h[%k] : memref<30xf64>
    %t = arith.addf %s, %one : f64
    memref.store %t, %h[%k] : memref<30xf64>
  }
  return
}

// -----

// CHECK-LABEL: func.func private @leaves_the_runtimes_own(
// CHECK-NOT: fastmath
func.func private @leaves_the_runtimes_own(%A: memref<30xf64>, %y: memref<f64>) {
  affine.for %j = 0 to 30 {
    %s = affine.load %y[] : memref<f64>
    %a = affine.load %A[%j] : memref<30xf64>
    %t = arith.addf %s, %a : f64
    affine.store %t, %y[] : memref<f64>
  }
  return
}

// -----

// CHECK-LABEL: func.func private @strict(
// CHECK-NOT: fastmath
module attributes {avial.strict} {
func.func private @strict(%A: memref<30xf64>, %y: memref<f64>) attributes {avial.task = "S1"} {
  affine.for %j = 0 to 30 {
    %s = affine.load %y[] : memref<f64>
    %a = affine.load %A[%j] : memref<30xf64>
    %t = arith.addf %s, %a : f64
    affine.store %t, %y[] : memref<f64>
  }
  return
}
}

// -----

// Vectors would have to gather its elements one by one.
// CHECK-LABEL: func.func private @leaves_sums_of_columns(
// CHECK-NOT: fastmath
func.func private @leaves_sums_of_columns(%A: memref<30x20xf64>, %y: memref<20xf64>)
    attributes {avial.task = "S1"} {
  affine.for %i = 0 to 20 {
    affine.for %j = 0 to 30 {
      %s = affine.load %y[%i] : memref<20xf64>
      %a = affine.load %A[%j, %i] : memref<30x20xf64>
      %t = arith.addf %s, %a : f64
      affine.store %t, %y[%i] : memref<20xf64>
    }
  }
  return
}

// -----

// What makes the terms keeps its roundings, sums and products that the chain does not go through.
// CHECK-LABEL: func.func private @leaves_the_terms(
// CHECK: %[[P:[a-z0-9_]+]] = arith.mulf %{{[a-z0-9_]+}}, %[[B:[a-z0-9_]+]] : f64
// CHECK-NEXT: %[[Q:[a-z0-9_]+]] = arith.addf %[[P]], %[[B]] : f64
// CHECK-NEXT: %[[R:[a-z0-9_]+]] = arith.addf %{{[a-z0-9_]+}}, %[[P]] fastmath<reassoc,contract> : f64
// CHECK-NEXT: arith.addf %[[Q]], %[[R]] fastmath<reassoc,contract> : f64
func.func private @leaves_the_terms(%A: memref<30xf64>, %B: memref<30xf64>, %y: memref<f64>)
    attributes {avial.task = "S1"} {
  affine.for %j = 0 to 30 {
    %s = affine.load %y[] : memref<f64>
    %a = affine.load %A[%j] : memref<30xf64>
    %b = affine.load %B[%j] : memref<30xf64>
    %p = arith.mulf %a, %b : f64
    %q = arith.addf %p, %b : f64
    %t = arith.addf %s, %p : f64
    %u = arith.addf %q, %t : f64
    affine.store %u, %y[] : memref<f64>
  }
  return
}

// -----

// CHECK-LABEL: func.func private @as_many_terms_as_lanes(
// CHECK: arith.addf {{.*}} fastmath<reassoc,contract>
func.func private @as_many_terms_as_lanes(%A: memref<20x4xf64>, %y: memref<20xf64>)
    attributes {avial.task = "S1"} {
  %zero = arith.constant 0.0 : f64
  affine.for %i = 0 to 20 {
    %s = affine.for %j = 0 to 4 iter_args(%d = %zero) -> (f64) {
      %a = affine.load %A[%i, %j] : memref<20x4xf64>
      %e = arith.addf %d, %a : f64
      affine.yield %e : f64
    }
    affine.store %s, %y[%i] : memref<20xf64>
  }
  return
}

// -----

// CHECK-LABEL: func.func private @leaves_sums_that_fill_no_vector(
// CHECK-NOT: fastmath
func.func private @leaves_sums_that_fill_no_vector(%A: memref<20x3xf64>, %y: memref<20xf64>)
    attributes {avial.task = "S1"} {
  %zero = arith.constant 0.0 : f64
  affine.for %i = 0 to 20 {
    %s = affine.for %j = 0 to 3 iter_args(%d = %zero) -> (f64) {
      %a = affine.load %A[%i, %j] : memref<20x3xf64>
      %e = arith.addf %d, %a : f64
      affine.yield %e : f64
    }
    affine.store %s, %y[%i] : memref<20xf64>
  }
  return
}
