// RUN: -p independent-accesses

// Row i and row k of one array are apart, as i > k.

// CHECK-LABEL: func.func @rows_apart
// CHECK: affine.for
// CHECK: affine.for
// CHECK: affine.for
// CHECK: } {avial.independent}
// CHECK-NEXT: }
// CHECK-NEXT: }
func.func @rows_apart(%A: memref<40x40xf64>) attributes {avial.no_alias} {
  affine.for %k = 0 to 40 {
    affine.for %i = affine_map<(d) -> (d + 1)>(%k) to 40 {
      affine.for %j = 0 to 40 {
        %a = affine.load %A[%i, %j] : memref<40x40xf64>
        %u = affine.load %A[%k, %j] : memref<40x40xf64>
        %rest = arith.subf %a, %u : f64
        affine.store %rest, %A[%i, %j] : memref<40x40xf64>
      }
    }
  }
  return
}

// -----

// CHECK-LABEL: func.func @leaves_recurrences
// CHECK-NOT: avial.independent
func.func @leaves_recurrences(%A: memref<40xf64>) attributes {avial.no_alias} {
  affine.for %j = 1 to 40 {
    %a = affine.load %A[%j - 1] : memref<40xf64>
    affine.store %a, %A[%j] : memref<40xf64>
  }
  return
}

// -----

// Each iteration has memory of its own here, but not in LLVM's words.

// CHECK-LABEL: func.func @leaves_scratch
// CHECK-NOT: avial.independent
func.func @leaves_scratch(%A: memref<40xf64>) attributes {avial.no_alias} {
  affine.for %j = 0 to 40 {
    %own = memref.alloca() : memref<f64>
    %a = affine.load %A[%j] : memref<40xf64>
    affine.store %a, %own[] : memref<f64>
    %b = affine.load %own[] : memref<f64>
    affine.store %b, %A[%j] : memref<40xf64>
  }
  return
}

// -----

// What it hands on is no memory.

// CHECK-LABEL: func.func @with_a_sum
// CHECK: } {avial.independent}
func.func @with_a_sum(%A: memref<40xf64>) -> f64 attributes {avial.no_alias} {
  %zero = arith.constant 0.0 : f64
  %sum = affine.for %j = 0 to 40 iter_args(%s = %zero) -> (f64) {
    %a = affine.load %A[%j] : memref<40xf64>
    %next = arith.addf %s, %a : f64
    affine.store %next, %A[%j] : memref<40xf64>
    affine.yield %next : f64
  }
  return %sum : f64
}

// -----

// Nobody knows what it does.

// CHECK-LABEL: func.func @leaves_calls
// CHECK-NOT: avial.independent
func.func private @anything(f64)
func.func @leaves_calls(%A: memref<40xf64>) attributes {avial.no_alias} {
  affine.for %j = 0 to 40 {
    %a = affine.load %A[%j] : memref<40xf64>
    affine.store %a, %A[%j] : memref<40xf64>
    func.call @anything(%a) : (f64) -> ()
  }
  return
}
