// RUN: -p select-gpu-tasks

// CHECK-NOT: @cpu_task
// CHECK: func.func private @used(
// CHECK-NOT: @unused
// CHECK: func.func private @gpu_task(
// CHECK-NOT: @main
func.func private @cpu_task() attributes {avial.arch = "x86_64"} {
  return
}
func.func private @used() {
  return
}
func.func private @unused() {
  return
}
func.func private @gpu_task() attributes {avial.arch = "sm_90"} {
  func.call @used() : () -> ()
  return
}
func.func @main() attributes {avial.ranks = 1 : i32} {
  func.call @cpu_task() : () -> ()
  func.call @gpu_task() : () -> ()
  return
}
