// RUN: -p thread-loops,outline-drivers{least=3}

// What one thread goes through stands in functions, with what it hands on; what is left has no loop
// of its own but the one around both.
// CHECK: func.func private @driver.part({{.*}}) attributes {avial.no_alias, passthrough = ["noinline"]}
// CHECK: func.func private @driver.alone(%{{.*}}: f32, %{{.*}}: memref<9xf32>) -> f32 attributes {avial.no_alias, passthrough = ["noinline"]}
// CHECK: affine.for
// CHECK: return %{{.*}} : f32
// CHECK: func.func private @driver.alone1(%{{.*}}: memref<9xf32>, %{{.*}}: f32) attributes
// CHECK: affine.for
// CHECK: func.func @driver({{.*}}) attributes {{{.*}}"outline-drivers{{.*}} outlined from it: 2"], avial.no_alias, passthrough = ["noinline", "optnone"]}
// CHECK-NEXT: affine.for
// CHECK-NOT: affine.for
// CHECK: %[[SUM:.*]] = func.call @driver.alone(%{{.*}}, %{{.*}}) : (f32, memref<9xf32>) -> f32
// CHECK-NEXT: func.call @driver.alone1(%{{.*}}, %[[SUM]])
// CHECK: omp.parallel
func.func @driver(%A: memref<9xf32>, %B: memref<9x9xf32>, %x: f32) attributes {avial.no_alias} {
  affine.for %t = 0 to 5 {
    %sum = affine.for %i = 0 to 9 iter_args(%so_far = %x) -> f32 {
      %a = affine.load %A[%i] : memref<9xf32>
      %next = arith.addf %so_far, %a : f32
      affine.yield %next : f32
    }
    affine.for %i = 1 to 9 {
      %a = affine.load %A[%i - 1] : memref<9xf32>
      %b = arith.addf %a, %sum : f32
      affine.store %b, %A[%i] : memref<9xf32>
    }
    affine.for %i = 0 to 9 {
      affine.for %j = 0 to 9 {
        affine.store %x, %B[%i, %j] : memref<9x9xf32>
      }
    } {avial.parallel}
  }
  return
}

// -----

// Of nothing that threads share, nothing is left to direct.
// CHECK-LABEL: func.func @alone(
// CHECK-NOT: optnone
// CHECK: affine.for
func.func @alone(%A: memref<9xf32>, %x: f32) {
  affine.for %i = 0 to 9 {
    affine.store %x, %A[%i] : memref<9xf32>
  }
  return
}
