// RUN: -p convert-to-llvm,reconcile-unrealized-casts,asserts-to-runtime

// What an assertion says goes to the run, with its line. An entry, and what it alone calls, returns.

// CHECK-LABEL: llvm.func @main
// CHECK: llvm.getelementptr
// CHECK-NEXT: %[[LINE:.*]] = llvm.mlir.constant({{[0-9]+}} : i64) : i64
// CHECK-NEXT: %[[COLUMN:.*]] = llvm.mlir.constant({{[0-9]+}} : i64) : i64
// CHECK: llvm.call @avial.fail(%{{.*}}, %[[LINE]], %[[COLUMN]]) : (!llvm.ptr, i64, i64) -> ()
// CHECK-NEXT: llvm.return
func.func @main(%y: i64) attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0 : i64
  %some = arith.cmpi ne, %y, %zero : i64
  cf.assert %some, "there is nothing to divide by"
  func.call @body(%y) : (i64) -> ()
  return
}

// CHECK-LABEL: llvm.func @body
// CHECK: llvm.call @avial.fail(
// CHECK-NEXT: llvm.return
func.func @body(%y: i64) {
  %one = arith.constant 1 : i64
  %more = arith.cmpi ne, %y, %one : i64
  cf.assert %more, "one is not enough"
  %z = func.call @checked(%one, %y) : (i64, i64) -> i64
  return
}

// Whoever calls this would go on.
// CHECK-LABEL: llvm.func @checked
// CHECK: llvm.call @avial.die(
// CHECK-NEXT: llvm.unreachable
func.func @checked(%x: i64, %y: i64) -> i64 {
  %zero = arith.constant 0 : i64
  %some = arith.cmpi ne, %y, %zero : i64
  cf.assert %some, "division by zero"
  %z = arith.divsi %x, %y : i64
  return %z : i64
}
