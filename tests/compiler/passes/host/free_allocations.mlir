// RUN: -p free-allocations

// CHECK-LABEL: func.func @alloca_in_a_loop(
// CHECK-NEXT: memref.alloca() : memref<4xf32>
// CHECK-NEXT: scf.for
// CHECK-NOT: memref.alloca
func.func @alloca_in_a_loop(%n: index) {
  scf.for %i = %n to %n step %n {
    %t = memref.alloca() : memref<4xf32>
    memref.copy %t, %t : memref<4xf32> to memref<4xf32>
  }
  return
}

// -----

// CHECK-LABEL: func.func @large_or_of_unknown_size(
// CHECK: scf.for
// CHECK-DAG: %[[T:.*]] = memref.alloc() : memref<100000xf32>
// CHECK-DAG: %[[S:.*]] = memref.alloc(%{{.*}}) : memref<?xf32>
// CHECK-DAG: memref.dealloc %[[T]]
// CHECK-DAG: memref.dealloc %[[S]]
// CHECK-NOT: memref.alloca
func.func @large_or_of_unknown_size(%n: index) {
  scf.for %i = %n to %n step %n {
    %t = memref.alloca() : memref<100000xf32>
    %s = memref.alloca(%n) : memref<?xf32>
  }
  return
}

// -----

// Freed at the end of its block, after the last use through a view.

// CHECK-LABEL: func.func @freed(
// CHECK: %[[T:.*]] = memref.alloc() : memref<4xf32>
// CHECK: memref.copy
// CHECK-NEXT: memref.dealloc %[[T]]
// CHECK-NEXT: }
func.func @freed(%n: index) {
  scf.for %i = %n to %n step %n {
    %t = memref.alloc() : memref<4xf32>
    %v = memref.subview %t[0] [2] [1] : memref<4xf32> to memref<2xf32>
    memref.copy %v, %v : memref<2xf32> to memref<2xf32>
  }
  return
}

// -----

// CHECK-LABEL: func.func @freed_by_the_program(
// CHECK-COUNT-1: memref.dealloc
// CHECK-NOT: memref.dealloc
func.func @freed_by_the_program() {
  %t = memref.alloc() : memref<4xf32>
  memref.dealloc %t : memref<4xf32>
  return
}

// -----

// One of two buffers, of which one is not the function's: it is freed if it is the function's own.

// CHECK-LABEL: func.func @leaves_its_block(
// CHECK: %[[T:.*]]:2 = scf.if %{{.*}} -> (memref<4xf32>, i1) {
// CHECK: %[[OWN:.*]] = memref.alloc()
// CHECK: scf.yield %[[OWN]], %true
// CHECK: scf.yield %{{.*}}, %false
// CHECK: scf.if %[[T]]#1 {
// CHECK-NEXT: memref.dealloc
func.func @leaves_its_block(%c: i1, %a: memref<4xf32>) {
  %t = scf.if %c -> memref<4xf32> {
    %u = memref.alloc() : memref<4xf32>
    scf.yield %u : memref<4xf32>
  } else {
    scf.yield %a : memref<4xf32>
  }
  return
}

// -----

// What a loop hands on is freed when the next turn has read it; another one at the end of the turn.

// CHECK-LABEL: func.func @handed_on(
// CHECK: %[[LAST:.*]]:2 = scf.for {{.*}} iter_args(%[[FROM:.*]] = %{{.*}}, %[[OWNED:.*]] = %false)
// CHECK: memref.alloc()
// CHECK: %[[TO:.*]] = memref.alloc()
// CHECK: memref.copy %[[FROM]], %[[TO]]
// CHECK: scf.if %[[OWNED]] {
// CHECK-NEXT: memref.dealloc
// CHECK: scf.yield %[[TO]], %true
// CHECK: scf.if %[[LAST]]#1 {
// CHECK-NEXT: memref.dealloc
func.func @handed_on(%a: memref<4xf32>, %b: memref<4xf32>, %n: index) {
  %last = scf.for %t = %n to %n step %n iter_args(%from = %a) -> (memref<4xf32>) {
    %spare = memref.alloc() : memref<4xf32>
    %to = memref.alloc() : memref<4xf32>
    memref.copy %from, %spare : memref<4xf32> to memref<4xf32>
    memref.copy %from, %to : memref<4xf32> to memref<4xf32>
    scf.yield %to : memref<4xf32>
  }
  memref.copy %last, %b : memref<4xf32> to memref<4xf32>
  return
}

// -----

// CHECK-LABEL: func.func @handed_on_and_freed(
// CHECK-COUNT-1: memref.dealloc
// CHECK-NOT: memref.dealloc
func.func @handed_on_and_freed(%c: i1, %a: memref<4xf32>) {
  %own = memref.alloc() : memref<4xf32>
  memref.dealloc %own : memref<4xf32>
  %t = scf.if %c -> memref<4xf32> {
    %u = memref.alloc() : memref<4xf32>
    scf.yield %u : memref<4xf32>
  } else {
    scf.yield %a : memref<4xf32>
  }
  return
}

// -----

// CHECK-LABEL: func.func @returned(
// CHECK-NOT: memref.dealloc
func.func @returned() -> memref<4xf32> {
  %t = memref.alloc() : memref<4xf32>
  return %t : memref<4xf32>
}

// -----

// CHECK-LABEL: func.func @scope(
// CHECK: memref.alloca()
// CHECK-NOT: alloca_scope
func.func @scope() {
  memref.alloca_scope {
    %t = memref.alloca() : memref<4xf32>
  }
  return
}

// -----

// Other blocks use it: it is freed where they end.

// CHECK-LABEL: func.func @used_behind_a_jump(
// CHECK-SAME: %[[A:.*]]: memref<4xf32>
// CHECK: %[[T:.*]] = memref.alloc() : memref<4xf32>
// CHECK-NOT: memref.dealloc
// CHECK: cf.cond_br
// CHECK: memref.copy %[[T]], %[[A]]
// CHECK-NEXT: memref.dealloc %[[T]]
// CHECK-NEXT: return
// CHECK: memref.dealloc %[[T]]
// CHECK-NEXT: return
func.func @used_behind_a_jump(%a: memref<4xf32>, %c: i1) {
  %t = memref.alloc() : memref<4xf32>
  cf.cond_br %c, ^then, ^else
^then:
  memref.copy %t, %a : memref<4xf32> to memref<4xf32>
  return
^else:
  return
}

// -----

// It may be allocated again before it is freed.

// CHECK-LABEL: func.func @allocated_again_and_again(
// CHECK-NOT: memref.dealloc
func.func @allocated_again_and_again(%a: memref<4xf32>, %c: i1) {
  cf.br ^again
^again:
  %t = memref.alloc() : memref<4xf32>
  cf.br ^use
^use:
  memref.copy %t, %a : memref<4xf32> to memref<4xf32>
  cf.cond_br %c, ^again, ^end
^end:
  return
}
