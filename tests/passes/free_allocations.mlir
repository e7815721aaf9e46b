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

// CHECK-LABEL: func.func @leaves_its_block(
// CHECK-NOT: memref.dealloc
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
