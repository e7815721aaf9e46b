// RUN: -p signed-offsets

// An offset that is a negative multiple of an index may not be taken for a huge number.
// CHECK-LABEL: llvm.func @takes_the_promises_back
// CHECK: llvm.mul %{{.*}}, %{{.*}} : i64
// CHECK: llvm.sub %{{.*}}, %{{.*}} : i64
// CHECK: llvm.add %{{.*}}, %{{.*}} : i64
// CHECK: llvm.getelementptr %{{.*}}[%{{.*}}, 2] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<4 x i32>
llvm.func @takes_the_promises_back(%p: !llvm.ptr, %i: i64, %s: i64) -> i32 {
  %k = llvm.mul %i, %s overflow<nsw, nuw> : i64
  %m = llvm.sub %k, %i overflow<nsw> : i64
  %n = llvm.add %m, %i overflow<nuw> : i64
  %e = llvm.getelementptr inbounds|nuw %p[%n, 2] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<4 x i32>
  %v = llvm.load %e : !llvm.ptr -> i32
  llvm.return %v : i32
}

// -----
// CHECK-LABEL: llvm.func @leaves_what_is_not_about_wrapping
// CHECK: llvm.udiv exact %{{.*}}, %{{.*}} : i64
// CHECK: llvm.fadd %{{.*}} {fastmathFlags = #llvm.fastmath<contract>} : f32
llvm.func @leaves_what_is_not_about_wrapping(%i: i64, %x: f32) -> f32 {
  %k = llvm.udiv exact %i, %i : i64
  %y = llvm.fadd %x, %x {fastmathFlags = #llvm.fastmath<contract>} : f32
  llvm.return %y : f32
}
