// RUN: -p no-alias-to-llvm

// Every pointer of a marked function is its array's own; numbers are left alone, and so is the mark's absence.

// CHECK: llvm.func @marked(%{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: i64, %{{.*}}: !llvm.ptr {llvm.noalias}) {
llvm.func @marked(%a: !llvm.ptr, %n: i64, %b: !llvm.ptr) attributes {avial.no_alias} {
  llvm.return
}

// CHECK: llvm.func @unmarked(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: !llvm.ptr) {
llvm.func @unmarked(%a: !llvm.ptr, %n: i64, %b: !llvm.ptr) {
  llvm.return
}
