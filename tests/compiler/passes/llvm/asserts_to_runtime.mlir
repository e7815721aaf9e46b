// RUN: -p convert-to-llvm,reconcile-unrealized-casts,asserts-to-runtime

// What an assertion says goes to the runtime, which ends the run.

// CHECK: llvm.func @avial_fail(!llvm.ptr) attributes {passthrough = ["noreturn", "nounwind", "cold"]}
// CHECK-LABEL: llvm.func @checked
// CHECK: llvm.call @avial_fail(%{{.*}}) : (!llvm.ptr) -> ()
// CHECK-NEXT: llvm.unreachable
// CHECK-NOT: llvm.call @abort
func.func @checked(%x: i64, %y: i64) -> i64 {
  %zero = arith.constant 0 : i64
  %some = arith.cmpi ne, %y, %zero : i64
  cf.assert %some, "division by zero"
  %z = arith.divsi %x, %y : i64
  return %z : i64
}
