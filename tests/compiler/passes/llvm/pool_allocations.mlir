// RUN: -p convert-to-llvm,reconcile-unrealized-casts,pool-allocations

// Memory is taken from what the program kept, and is given back to that; what comes new overlaps
// nothing else, as malloc's.

// CHECK-DAG: llvm.func @avial_take(i64) -> (!llvm.ptr {llvm.noalias})
// CHECK-DAG: llvm.func @avial_give(!llvm.ptr)
// CHECK-LABEL: llvm.func @scratch
// CHECK: %[[NEW:.*]] = llvm.call @avial_take(%{{.*}}) : (i64) -> !llvm.ptr
// CHECK: llvm.call @avial_give(%{{.*}}) : (!llvm.ptr) -> ()
// CHECK: llvm.return
func.func @scratch(%x: f64, %at: index) -> f64 {
  %row = memref.alloc() {alignment = 64 : i64} : memref<40xf64>
  memref.store %x, %row[%at] : memref<40xf64>
  %y = memref.load %row[%at] : memref<40xf64>
  memref.dealloc %row : memref<40xf64>
  return %y : f64
}

// Functions with a body are the program's own, whatever their names.

// CHECK-LABEL: llvm.func @calls
// CHECK: llvm.call @malloc_of_mine
// CHECK: llvm.call @other
func.func private @other(index)
func.func @malloc_of_mine(%n: index) {
  return
}
func.func @calls(%n: index) {
  call @malloc_of_mine(%n) : (index) -> ()
  call @other(%n) : (index) -> ()
  return
}
