// RUN: -p keep-independent,lower-affine,convert-scf-to-cf,convert-to-llvm,reconcile-unrealized-casts,independent-to-llvm

// The inner loop is annotated with all that it touches, also in a branch; the outer one's own store
// is not part of it.

// CHECK: #[[GROUP:.*]] = #llvm.access_group<id = distinct[{{[0-9]+}}]<>>
// CHECK: #[[LOOP:.*]] = #llvm.loop_annotation<parallelAccesses = #[[GROUP]]>
// CHECK-LABEL: llvm.func @inner
// CHECK: llvm.load %{{.*}} {access_groups = [#[[GROUP]]]}
// CHECK: llvm.store %{{.*}} {access_groups = [#[[GROUP]]]}
// CHECK-NOT: sideeffect
// CHECK: llvm.br ^{{.*}} {loop_annotation = #[[LOOP]]}
// CHECK: llvm.store %{{.*}}, %{{.*}} : f64, !llvm.ptr
// CHECK: llvm.br
// CHECK-NOT: loop_annotation
// CHECK: llvm.return
func.func @inner(%A: memref<40x40xf64>, %B: memref<40xf64>, %x: f64) {
  affine.for %i = 0 to 40 {
    affine.for %j = 0 to 40 {
      %a = affine.load %A[%i, %j] : memref<40x40xf64>
      affine.if affine_set<(d) : (d - 5 >= 0)>(%j) {
        affine.store %a, %A[%i, %j] : memref<40x40xf64>
      }
    } {avial.independent}
    affine.store %x, %B[%i] : memref<40xf64>
  }
  return
}

// -----

// A loop that is to stay as short as it is.

// CHECK: #[[STAY:.*]] = #llvm.loop_unroll<disable = true>
// CHECK: #[[ROLLED:.*]] = #llvm.loop_annotation<unroll = #[[STAY]]>
// CHECK-LABEL: llvm.func @rolled
// CHECK-NOT: sideeffect
// CHECK: llvm.br ^{{.*}} {loop_annotation = #[[ROLLED]]}
func.func @rolled(%A: memref<40xf64>, %x: f64) {
  affine.for %j = 0 to 40 step 8 {
    affine.store %x, %A[%j] : memref<40xf64>
  } {avial.rolled}
  return
}
