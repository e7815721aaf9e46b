// RUN: -p thread-loops

// The loop stands in a function for a range of it; each thread runs it once. Constants come along.
// CHECK: llvm.mlir.global external @avial_threads(1 : i64)
// CHECK: llvm.mlir.global external @avial_worth(0 : i64)
// CHECK: func.func private @even.part(%low: index, %high: index, %{{.*}}: f32, %{{.*}}: memref<?x9xf32>) attributes {avial.no_alias, passthrough = ["noinline"]}
// CHECK-NEXT: arith.constant 2.0
// CHECK-NEXT: affine.for %{{.*}} = %low to %high {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 9
// CHECK-LABEL: func.func @even(
// CHECK: %[[WORK:.*]] = arith.muli %{{.*}}, %c27
// CHECK: %[[COUNT:.*]] = llvm.load
// CHECK: %[[THREADS:.*]] = arith.index_cast %[[COUNT]]
// CHECK: %[[LEAST:.*]] = llvm.load
// CHECK: %[[WORTH:.*]] = arith.index_cast %[[LEAST]]
// CHECK: arith.cmpi sge, %[[WORK]], %[[WORTH]]
// CHECK: arith.cmpi sgt, %[[THREADS]], %c1
// CHECK: scf.if
// CHECK: %[[EACH:.*]] = arith.ceildivsi %{{.*}}, %[[THREADS]]
// CHECK: %[[CHUNK:.*]] = arith.maxsi %[[EACH]], %c1
// CHECK: omp.parallel num_threads(%{{.*}} : i32) {
// CHECK-NEXT: omp.wsloop nowait schedule(static) {
// CHECK-NEXT: omp.loop_nest (%[[FROM:.*]]) : index = ({{.*}}) to (%[[END:.*]]) step (%[[CHUNK]]) {
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[FROM]], %[[CHUNK]]
// CHECK-NEXT: %[[TO:.*]] = arith.minsi %[[NEXT]], %[[END]]
// CHECK-NEXT: func.call @even.part(%[[FROM]], %[[TO]],
// CHECK: } else {
// CHECK-NEXT: func.call @even.part(%{{.*}}, %[[END]],
func.func @even(%B: memref<?x9xf32>, %x: f32, %n: index) attributes {avial.no_alias} {
  %two = arith.constant 2.0 : f32
  affine.for %i = 0 to %n {
    affine.for %j = 0 to 9 {
      %y = arith.mulf %x, %two : f32
      %z = arith.addf %x, %y : f32
      affine.store %z, %B[%i, %j] : memref<?x9xf32>
    }
  } {avial.parallel}
  return
}

// -----

// Arrays that stay in the second caches of two cores: it has to be more work. (Not where one may be
// of any size, above.)
// CHECK-LABEL: func.func @small(
// CHECK: %[[LEAST:.*]] = llvm.load
// CHECK: llvm.load
// CHECK: %[[WORTH:.*]] = arith.index_cast
// CHECK: %[[MORE:.*]] = arith.muli %[[WORTH]], %c4
// CHECK: arith.cmpi sge, %{{.*}}, %[[MORE]]
func.func @small(%B: memref<90x9xf32>, %x: f32) {
  affine.for %i = 0 to 90 {
    affine.for %j = 0 to 9 {
      affine.store %x, %B[%i, %j] : memref<90x9xf32>
    }
  } {avial.parallel}
  return
}

// -----

// A block of a contraction has more to compute than to move.
// CHECK-LABEL: func.func @contraction(
// CHECK-NOT: %c4
// CHECK: return
func.func private @tile(%low: index, %high: index, %B: memref<90x9xf32>) {
  return
}
func.func @contraction(%B: memref<90x9xf32>, %low: index, %high: index) {
  affine.for %i = 0 to 90 {
    func.call @tile(%low, %high, %B) {avial.work = 3} : (index, index, memref<90x9xf32>) -> ()
  } {avial.parallel}
  return
}

// -----

// Rows of a triangle are not equally long: smaller parts, one after the other to who is free.
// CHECK-LABEL: func.func @triangle(
// CHECK: %c8 = arith.constant 8
// CHECK: %[[PARTS:.*]] = arith.muli %{{.*}}, %c8
// CHECK: arith.ceildivsi %{{.*}}, %[[PARTS]]
// CHECK: omp.wsloop nowait schedule(dynamic, monotonic)
func.func @triangle(%B: memref<9x9xf32>, %x: f32) {
  affine.for %i = 0 to 9 {
    affine.for %j = 0 to affine_map<(d0) -> (d0)>(%i) {
      affine.store %x, %B[%i, %j] : memref<9x9xf32>
    }
  } {avial.parallel}
  return
}

// -----

// Threads do not share a cache line of a row, and get whole vectors: their parts begin where lines
// do, also where the loop does not.
// CHECK-LABEL: func.func @row(
// CHECK: scf.if
// CHECK: %c32 = arith.constant 32
// CHECK: %[[LINE:.*]] = arith.floordivsi %[[LOW:.*]], %c32
// CHECK: %[[FIRST:.*]] = arith.muli %[[LINE]], %c32
// CHECK: %[[LINES:.*]] = arith.ceildivsi %{{.*}}, %c32
// CHECK: %[[CHUNK:.*]] = arith.muli %[[LINES]], %c32
// CHECK: omp.loop_nest (%[[FROM:.*]]) : index = (%[[FIRST]]) to (%{{.*}}) step (%[[CHUNK]])
// CHECK: %[[BEGIN:.*]] = arith.maxsi %[[FROM]], %[[LOW]]
// CHECK: func.call @row.part(%[[BEGIN]],
func.func @row(%B: memref<?xf32>, %x: f32, %m: index, %n: index) {
  affine.for %i = affine_map<()[s0] -> (s0 + 1)>()[%m] to %n {
    affine.store %x, %B[%i] : memref<?xf32>
  } {avial.parallel}
  return
}

// -----

// Only the first of its dimensions is divided.
// CHECK: func.func private @declared.part(%low: index, %high: index,
// CHECK: scf.parallel ({{.*}}) = (%low, %c0) to (%high, %{{.*}}) step
// CHECK-LABEL: func.func @declared(
// CHECK: omp.parallel
func.func @declared(%B: memref<?x?xf32>, %x: f32, %n: index) {
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  scf.parallel (%i, %j) = (%zero, %zero) to (%n, %n) step (%two, %two) {
    memref.store %x, %B[%i, %j] : memref<?x?xf32>
  } {avial.parallel}
  return
}

// -----

// A lower bound that is also a number in the body stays that number there.
// CHECK: func.func private @number.part(%low: index, %high: index,
// CHECK: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK: scf.for %[[I:.*]] = %low to %high step
// CHECK: memref.store %{{.*}}, %{{.*}}[%[[I]], %[[ZERO]]]
func.func @number(%B: memref<?x?xf32>, %x: f32, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    memref.store %x, %B[%i, %zero] : memref<?x?xf32>
  } {avial.parallel}
  return
}

// -----

// The outermost one that is marked, and no other.
// CHECK-LABEL: func.func @inner(
// CHECK: affine.for
// CHECK: omp.parallel
// CHECK-NOT: omp.parallel
func.func @inner(%B: memref<9x9xf32>, %x: f32) {
  affine.for %t = 0 to 5 {
    affine.for %i = 0 to 9 {
      affine.for %j = 0 to 9 {
        affine.store %x, %B[%i, %j] : memref<9x9xf32>
      } {avial.parallel}
    } {avial.parallel}
  }
  return
}

// -----

// Two views of one array are passed, and nothing is claimed of them.
// CHECK: func.func private @views.part({{.*}}) attributes {passthrough
func.func @views(%A: memref<20xf32>, %x: f32) attributes {avial.no_alias} {
  %a = memref.subview %A[0] [10] [1] : memref<20xf32> to memref<10xf32, strided<[1]>>
  %b = memref.subview %A[10] [10] [1] : memref<20xf32> to memref<10xf32, strided<[1], offset: 10>>
  affine.for %i = 0 to 10 {
    affine.store %x, %a[%i] : memref<10xf32, strided<[1]>>
    affine.store %x, %b[%i] : memref<10xf32, strided<[1], offset: 10>>
  } {avial.parallel}
  return
}

// -----

// CHECK-LABEL: func.func @unmarked
// CHECK-NEXT: affine.for
// CHECK-NOT: omp
func.func @unmarked(%A: memref<20xf32>, %x: f32) {
  affine.for %i = 0 to 10 {
    affine.store %x, %A[%i] : memref<20xf32>
  }
  return
}

// -----

// Every thread goes through all of the rows, with its part of each; one thread as before.
// CHECK: func.func private @columns.part(%low: index, %high: index,
// CHECK: affine.for %{{.*}} = 0 to 8 {
// CHECK-NEXT: affine.for %{{.*}} = max #{{.*}}()[%low] to min #{{.*}}()[%high] {
// CHECK-LABEL: func.func @columns(
// CHECK: %c16 = arith.constant 16
// CHECK: omp.wsloop nowait schedule(static)
// CHECK: } else {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 8 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 9 {
// CHECK-NOT: avial
// CHECK: return
func.func @columns(%A: memref<9x9xf64>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 9 {
      %a = affine.load %A[%i, %j] : memref<9x9xf64>
      affine.store %a, %A[%i + 1, %j] : memref<9x9xf64>
    } {avial.parallel}
  } {avial.sliced}
  return
}

// -----

// A row inside of a loop that goes on is not worth waiting for.
// CHECK-LABEL: func.func @rows
// CHECK-NOT: omp
func.func @rows(%A: memref<9xf32>, %x: f32) {
  affine.for %t = 0 to 8 {
    affine.for %j = 0 to 9 {
      affine.store %x, %A[%j] : memref<9xf32>
    } {avial.parallel}
  }
  return
}

// -----

// How often the inner loop runs is not asked: the loop may not run, and its middle be zero.
// CHECK-LABEL: func.func @quotient(
// CHECK-NOT: arith.divsi
// CHECK: omp.wsloop nowait schedule(dynamic, monotonic)
// CHECK-NOT: arith.divsi
// CHECK: return
func.func @quotient(%A: memref<9x9xf32>, %x: f32, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %nine = arith.constant 9 : index
  scf.for %i = %one to %n step %one {
    %m = arith.divsi %nine, %i : index
    scf.for %j = %zero to %m step %one {
      memref.store %x, %A[%i, %j] : memref<9x9xf32>
    }
  } {avial.parallel}
  return
}

// -----

// A sum that starts from an element has as many terms in every row, and all of them count.
// CHECK-LABEL: func.func @sums(
// CHECK: omp.wsloop nowait schedule(static)
// CHECK: return
func.func @sums(%A: memref<9x9xf32>, %y: memref<9xf32>) {
  affine.for %i = 0 to 9 {
    %start = affine.load %y[%i] : memref<9xf32>
    %sum = affine.for %j = 0 to 9 iter_args(%so_far = %start) -> f32 {
      %a = affine.load %A[%i, %j] : memref<9x9xf32>
      %next = arith.addf %so_far, %a : f32
      affine.yield %next : f32
    }
    affine.store %sum, %y[%i] : memref<9xf32>
  } {avial.parallel}
  return
}
