// RUN: -p check-loaded

// The bound is loaded: compared once, before the loop.

// CHECK-LABEL: func.func private @loaded(
// CHECK: %[[B:.*]] = memref.load %arg1
// CHECK: %[[OUT:.*]] = arith.cmpi sge, %[[B]], %c17
// CHECK: %[[INDEX:.*]] = arith.addi %[[B]], %c-1
// CHECK: llvm.call @avial.leave_if(%[[OUT]], %[[INDEX]]) {avial.access_outside = ["arg0[i]", 0, 16,
// CHECK-NEXT: affine.for
func.func private @loaded(%A: memref<16xf64>, %N: memref<1xi64>, %x: f64) {
  %c0 = arith.constant 0 : index
  %b = memref.load %N[%c0] : memref<1xi64>
  %n = arith.index_cast %b : i64 to index
  affine.for %i = 0 to %n {
    affine.store %x, %A[%i] : memref<16xf64>
  }
  return
}

// -----

// Both ends, through a view.

// CHECK-LABEL: func.func private @window(
// CHECK: llvm.call @avial.leave_if({{.*}}["arg0[i]", 0, 16,
// CHECK: llvm.call @avial.leave_if({{.*}}["arg0[i]", 0, 16,
// CHECK-NOT: leave_if
// CHECK: return
func.func private @window(%A: memref<16xf64>, %N: memref<1xi64>, %x: f64) {
  %c0 = arith.constant 0 : index
  %b = memref.load %N[%c0] : memref<1xi64>
  %n = arith.index_cast %b : i64 to index
  %v = memref.subview %A[%n] [4] [1] : memref<16xf64> to memref<4xf64, strided<[1], offset: ?>>
  affine.for %i = 0 to 4 {
    affine.store %x, %v[%i] : memref<4xf64, strided<[1], offset: ?>>
  }
  return
}

// -----

// Nothing that is loaded: what the caller hands over was looked at where it was known.

// CHECK-LABEL: func.func private @handed(
// CHECK-NOT: leave_if
// CHECK: return
func.func private @handed(%A: memref<16xf64>, %n: index, %x: f64) {
  affine.for %i = 0 to %n {
    affine.store %x, %A[%i] : memref<16xf64>
  }
  return
}

// -----

// In each iteration another index, and a condition on data: not decided before.

// CHECK-LABEL: func.func private @indirect(
// CHECK-NOT: leave_if
// CHECK: return
func.func private @indirect(%A: memref<16xf64>, %N: memref<16xi64>, %x: f64) {
  %c0 = arith.constant 0 : index
  %m = memref.load %N[%c0] : memref<16xi64>
  %n = arith.index_cast %m : i64 to index
  %some = arith.constant 5 : i64
  affine.for %i = 0 to 16 {
    %b = memref.load %N[%i] : memref<16xi64>
    %k = arith.index_cast %b : i64 to index
    memref.store %x, %A[%k] : memref<16xf64>
    %c = arith.cmpi slt, %b, %some : i64
    scf.if %c {
      memref.store %x, %A[%n] : memref<16xf64>
    }
  }
  return
}

// -----

// Where the loop begins is known in its branch alone, and the check would stand before that.

// CHECK-LABEL: func.func private @branch(
// CHECK-NOT: leave_if
// CHECK: return
func.func private @branch(%A: memref<16xf64>, %N: memref<16xi64>, %x: f64) {
  %c0 = arith.constant 0 : index
  %m = memref.load %N[%c0] : memref<16xi64>
  %n = arith.index_cast %m : i64 to index
  %zero = arith.constant 0 : i64
  %some = arith.cmpi ne, %m, %zero : i64
  scf.if %some {
    %k = memref.load %N[%n] : memref<16xi64>
    %first = arith.index_cast %k : i64 to index
    affine.for %i = 0 to %n {
      %p = arith.addi %i, %first : index
      memref.store %x, %A[%p] : memref<16xf64>
    }
  }
  return
}
