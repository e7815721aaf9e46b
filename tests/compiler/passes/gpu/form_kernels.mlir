// RUN: -p form-kernels

// Of loops that do not depend on each other x is the one along memory. A thread has several rows;
// where all are in the loop their number is known.

// CHECK-LABEL: func.func private @S1_kernel.element(
// CHECK-SAME: %{{.*}}: index, %[[A:.*]]: memref<100x70xf32>, %[[B:.*]]: memref<100x70xf32>, %[[EI:.*]]: index, %[[EJ:.*]]: index) attributes {avial.no_alias, avial.shared}
// CHECK: affine.load %[[A]][%[[EI]], %[[EJ]]]
// CHECK: affine.store %{{.*}}, %[[B]][%[[EI]], %[[EJ]]]

// CHECK: func.func private @S1_kernel(
// CHECK-SAME: %[[HIGH:.*]]: index, %[[KA:.*]]: memref<100x70xf32>, %[[KB:.*]]: memref<100x70xf32>, %[[I0:.*]]: index, %[[J0:.*]]: index, %[[BX:.*]]: index, %[[BY:.*]]: index, %{{.*}}: index, %[[TX:.*]]: index, %[[TY:.*]]: index, %{{.*}}: index) attributes {avial.blocks = ["ceil({{.*}} / 64)", "ceil({{.*}} / 16)", "1"], avial.kernel = array<i64: 64, 4, 1>, avial.no_alias, avial.shared}
// CHECK: %[[SKIPY:.*]] = arith.muli %[[BY]], %c16
// CHECK: %[[ROWS:.*]] = arith.muli %[[TY]], %c4
// CHECK: %[[Y:.*]] = arith.addi %[[SKIPY]], %[[ROWS]]
// CHECK: %[[SKIPX:.*]] = arith.muli %[[BX]], %c64
// CHECK: %[[X:.*]] = arith.addi %[[SKIPX]], %[[TX]]
// CHECK: %[[I:.*]] = arith.addi %[[I0]], %[[Y]]
// CHECK: %[[J:.*]] = arith.addi %[[J0]], %[[X]]
// CHECK: %[[BELOW:.*]] = arith.cmpi slt, %[[J]],
// CHECK: %[[FROM:.*]] = arith.cmpi sle, %{{.*}}, %[[J]]
// CHECK: %[[INJ:.*]] = arith.andi %[[FROM]], %[[BELOW]]
// CHECK: %[[LAST:.*]] = arith.addi %[[I]],
// CHECK: %[[WHOLE:.*]] = arith.cmpi slt, %[[LAST]],
// CHECK: %[[ALL:.*]] = arith.andi %[[INJ]], %[[WHOLE]]
// CHECK: scf.if %[[ALL]] {
// CHECK: scf.for %{{.*}} = %{{.*}} to %c4
// CHECK: func.call @S1_kernel.element(%[[HIGH]], %[[KA]], %[[KB]], %{{.*}}, %[[J]])
// CHECK: } else {
// CHECK: scf.if
// CHECK: %[[LEFT:.*]] = arith.minsi
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[LEFT]]
// CHECK: func.call @S1_kernel.element(

// CHECK: func.func private @S1_kernel.grid(
// CHECK-COUNT-6: scf.for
// CHECK: func.call @S1_kernel(

// CHECK: func.func private @S1(
// CHECK-SAME: avial.launcher
// CHECK-NOT: affine.for
// Columns begin at 2, and the threads along them at 0, where a line of memory does.
// CHECK: %[[LINE:.*]] = arith.andi
// CHECK: call @S1_kernel.grid({{.*}}, %[[LINE]], {{.*}}) {avial.queued = "S1_kernel"}
func.func private @S1(%A: memref<100x70xf32>, %B: memref<100x70xf32>, %high: index) attributes {avial.no_alias, avial.task = "S1"} {
  affine.for %i = 1 to min affine_map<()[h] -> (99, h)>()[%high] {
    affine.for %j = 2 to 69 {
      %a = affine.load %A[%i, %j] : memref<100x70xf32>
      %b = arith.addf %a, %a : f32
      affine.store %b, %B[%i, %j] : memref<100x70xf32>
    }
  }
  return
}
func.func @two_axes(%A: memref<100x70xf32>, %B: memref<100x70xf32>, %high: index) {
  call @S1(%A, %B, %high) {avial.launch = array<i64: 0, 1, -1>} : (memref<100x70xf32>, memref<100x70xf32>, index) -> ()
  return
}

// -----

// Where a loop begins and ends with the one around, each thread asks whether it is in it.

// CHECK-LABEL: func.func private @S1_kernel(
// CHECK: %[[INI:.*]] = arith.cmpi slt
// CHECK: %[[BELOW:.*]] = arith.cmpi slt, %[[J:.*]],
// CHECK: %[[ABOVE:.*]] = arith.cmpi sle, %{{.*}}, %[[J]]
// CHECK: %[[INJ:.*]] = arith.andi %[[ABOVE]], %[[BELOW]]
// CHECK: %[[IN:.*]] = arith.andi %[[INI]], %[[INJ]]
// CHECK: scf.if %[[IN]]
// CHECK: func.func private @S1(
// CHECK-COUNT-2: affine.apply
func.func private @S1(%A: memref<150x150xf64>) attributes {avial.no_alias, avial.task = "S1"} {
  affine.for %i = 3 to 140 {
    affine.for %j = max affine_map<(d) -> (d - 20, 0)>(%i) to affine_map<(d) -> (d + 1)>(%i) {
      %a = affine.load %A[%i, %j] : memref<150x150xf64>
      %b = arith.addf %a, %a : f64
      affine.store %b, %A[%i, %j] : memref<150x150xf64>
    }
  }
  return
}
func.func @band(%A: memref<150x150xf64>) {
  call @S1(%A) {avial.launch = array<i64: 0>} : (memref<150x150xf64>) -> ()
  return
}

// -----

// A loop around that runs in order stays with the host; memory of a thread is its own.

// CHECK-LABEL: func.func private @S1_kernel.element(
// CHECK: memref.alloca() : memref<2xf32>
// CHECK-NOT: memref.dealloc
// CHECK: func.func private @S1(
// CHECK: affine.for
// CHECK: call @S1_kernel.grid(
func.func private @S1(%A: memref<500xf32>, %n: index) attributes {avial.no_alias, avial.task = "S1"} {
  affine.for %t = 0 to %n {
    affine.for %i = 5 to 500 step 3 {
      %own = memref.alloc() : memref<2xf32>
      %a = affine.load %A[%i] : memref<500xf32>
      %b = arith.mulf %a, %a : f32
      affine.store %b, %own[1] : memref<2xf32>
      %c = affine.load %own[1] : memref<2xf32>
      affine.store %c, %A[%i] : memref<500xf32>
      memref.dealloc %own : memref<2xf32>
    }
  }
  return
}
func.func @in_order(%A: memref<500xf32>, %n: index) {
  call @S1(%A, %n) {avial.launch = array<i64: 0, -1>} : (memref<500xf32>, index) -> ()
  return
}

// -----

// What hangs together is one thread's.

// CHECK-LABEL: func.func private @S1_kernel.element(
// CHECK: affine.for
// CHECK: affine.for
// CHECK: func.func private @S1_kernel(
// CHECK-SAME: avial.kernel = array<i64: 1, 1, 1>
// CHECK: func.func private @S1(
// CHECK-NOT: affine.for
func.func private @S1(%A: memref<50xi32>) attributes {avial.no_alias, avial.task = "S1"} {
  affine.for %i = 1 to 50 {
    %a = affine.load %A[%i - 1] : memref<50xi32>
    %b = affine.load %A[%i] : memref<50xi32>
    %c = arith.addi %a, %b : i32
    affine.store %c, %A[%i] : memref<50xi32>
  }
  affine.for %i = 0 to 50 {
    %a = affine.load %A[%i] : memref<50xi32>
    %c = arith.addi %a, %a : i32
    affine.store %c, %A[%i] : memref<50xi32>
  }
  return
}
func.func @one_thread(%A: memref<50xi32>) {
  call @S1(%A) {avial.launch = array<i64: 0>} : (memref<50xi32>) -> ()
  return
}

// -----

// What a device would compute otherwise stays as it is, and what is called too.

// CHECK-LABEL: func.func private @S1(
// CHECK: affine.for
// CHECK-NOT: kernel
func.func private @S1(%A: memref<50xf32>) attributes {avial.no_alias, avial.task = "S1"} {
  affine.for %i = 0 to 50 {
    %a = affine.load %A[%i] : memref<50xf32>
    %b = math.sin %a : f32
    affine.store %b, %A[%i] : memref<50xf32>
  }
  return
}
func.func private @S2(%A: memref<50xf32>) attributes {avial.no_alias, avial.task = "S2"} {
  affine.for %i = 0 to 50 {
    %a = affine.load %A[%i] : memref<50xf32>
    affine.store %a, %A[%i] : memref<50xf32>
  }
  return
}
func.func @left_alone(%A: memref<50xf32>) {
  call @S1(%A) {avial.launch = array<i64: 0>} : (memref<50xf32>) -> ()
  call @S2(%A) : (memref<50xf32>) -> ()
  return
}

// -----

// Parts of a loop are kernels of their own; what goes over columns goes outside of what is in order.

// CHECK-LABEL: func.func private @S1_kernel.element(
// CHECK-NOT: affine.for
// CHECK: arith.mulf
// CHECK: func.func private @S1_kernel(
// CHECK-SAME: avial.kernel = array<i64: 64, 4, 1>
// CHECK: func.func private @S1_kernel_0.element(
// CHECK: affine.for %{{.*}} = 0 to 30 {
// CHECK-NOT: affine.for
// CHECK: func.func private @S1_kernel_0(
// CHECK-SAME: avial.kernel = array<i64: 64, 4, 1>
// CHECK: func.func private @S1(
// CHECK: call @S1_kernel.grid(
// CHECK: call @S1_kernel_0.grid(
func.func private @S1(%C: memref<20x70xf64>, %A: memref<20x30xf64>, %B: memref<30x70xf64>, %beta: f64) attributes {avial.no_alias, avial.task = "S1"} {
  affine.for %i = 0 to 20 {
    affine.for %j = 0 to 70 {
      %c = affine.load %C[%i, %j] : memref<20x70xf64>
      %d = arith.mulf %c, %beta : f64
      affine.store %d, %C[%i, %j] : memref<20x70xf64>
    }
    affine.for %k = 0 to 30 {
      affine.for %j = 0 to 70 {
        %a = affine.load %A[%i, %k] : memref<20x30xf64>
        %b = affine.load %B[%k, %j] : memref<30x70xf64>
        %c = affine.load %C[%i, %j] : memref<20x70xf64>
        %ab = arith.mulf %a, %b : f64
        %d = arith.addf %c, %ab : f64
        affine.store %d, %C[%i, %j] : memref<20x70xf64>
      }
    }
  }
  return
}
func.func @parts(%C: memref<20x70xf64>, %A: memref<20x30xf64>, %B: memref<30x70xf64>, %beta: f64) {
  call @S1(%C, %A, %B, %beta) {avial.launch = array<i64: 0, 1, 2, -1>} : (memref<20x70xf64>, memref<20x30xf64>, memref<30x70xf64>, f64) -> ()
  return
}

// -----

// A value that goes from part to part keeps them together.

// CHECK-LABEL: func.func private @S1_kernel.element(
// CHECK: affine.for
// CHECK: func.func private @S1_kernel(
// CHECK-SAME: avial.kernel = array<i64: 256, 1, 1>
// CHECK-NOT: @S1_kernel_0
func.func private @S1(%A: memref<50x40xf64>, %x: memref<50xf64>) attributes {avial.no_alias, avial.task = "S1"} {
  %zero = arith.constant 0.0 : f64
  affine.for %i = 0 to 50 {
    %sum = affine.for %j = 0 to 40 iter_args(%s = %zero) -> f64 {
      %a = affine.load %A[%i, %j] : memref<50x40xf64>
      %t = arith.addf %s, %a : f64
      affine.yield %t : f64
    }
    affine.for %j = 0 to 40 {
      affine.store %sum, %A[%i, %j] : memref<50x40xf64>
    }
    affine.store %sum, %x[%i] : memref<50xf64>
  }
  return
}
func.func @together(%A: memref<50x40xf64>, %x: memref<50xf64>) {
  call @S1(%A, %x) {avial.launch = array<i64: 0, 1>} : (memref<50x40xf64>, memref<50xf64>) -> ()
  return
}
