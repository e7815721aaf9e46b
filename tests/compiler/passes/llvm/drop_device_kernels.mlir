// RUN: -p drop-device-kernels

// The host's part has no operation of the gpu dialect then.

// CHECK-NOT: gpu.barrier
// CHECK: func.func private @t_kernel.grid(
// CHECK: func.func @main(

func.func private @t_kernel(%a: memref<8xf32>, %bx: index, %by: index, %bz: index, %tx: index, %ty: index, %tz: index) attributes {avial.kernel = array<i64: 8, 1, 1>, avial.on_device} {
  gpu.barrier
  return
}
func.func private @t_kernel.grid(%a: memref<8xf32>, %x: index, %y: index, %z: index) {
  return
}
func.func @main() {
  return
}
