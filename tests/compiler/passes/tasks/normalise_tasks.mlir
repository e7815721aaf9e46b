// RUN: -p normalise-tasks{least=1}

// A body's loops are raised to affine, its arrays known to be different memory.

// CHECK-LABEL: func.func private @scales
// CHECK-SAME:    attributes {avial.arch = "cpu", avial.no_alias, avial.task = "scales"}
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK-NEXT:      %[[X:.*]] = affine.load %{{.*}}[%[[I]]]
// CHECK:           affine.store %{{.*}}, %{{.*}}[%[[I]]]
func.func private @scales(%a: memref<8xf32>, %b: memref<8xf32>) attributes {avial.as_written, avial.arch = "cpu", avial.task = "scales"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %x = memref.load %a[%i] : memref<8xf32>
    %y = arith.addf %x, %x : f32
    memref.store %y, %b[%i] : memref<8xf32>
  }
  return
}

// A named operation becomes loops.

// CHECK-LABEL: func.func private @multiplies
// CHECK-NOT:     linalg
// CHECK-COUNT-3: affine.for
func.func private @multiplies(%a: memref<8x8xf32>, %b: memref<8x8xf32>, %c: memref<8x8xf32>) attributes {avial.as_written, avial.arch = "cpu", avial.task = "multiplies"} {
  linalg.matmul ins(%a, %b : memref<8x8xf32>, memref<8x8xf32>) outs(%c : memref<8x8xf32>)
  return
}

// A function that a body calls on its arrays is written out, and stays for others.

// CHECK-LABEL: func.func private @calls
// CHECK-NOT:     call @first
// CHECK:         affine.for
func.func private @calls(%a: memref<8xf32>, %b: memref<8xf32>) attributes {avial.as_written, avial.arch = "cpu", avial.task = "calls"} {
  func.call @first(%a, %b) : (memref<8xf32>, memref<8xf32>) -> ()
  return
}
// CHECK-LABEL: func.func private @first
func.func private @first(%a: memref<8xf32>, %b: memref<8xf32>) {
  affine.for %i = 0 to 8 {
    %x = affine.load %a[%i] : memref<8xf32>
    affine.store %x, %b[%i] : memref<8xf32>
  }
  return
}

// Arrays that may be the same memory: nothing is known of the body's loops.

// CHECK-LABEL: func.func private @overlaps
// CHECK-SAME:    avial.shared
// CHECK:         scf.for
func.func private @overlaps(%a: memref<8xf32>, %b: memref<8xf32>) attributes {avial.as_written, avial.arch = "cpu", avial.task = "overlaps"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %x = memref.load %a[%i] : memref<8xf32>
    memref.store %x, %b[%i] : memref<8xf32>
  }
  return
}

// A kernel of a GPU is not the host's.

// CHECK-LABEL: func.func private @launches
// CHECK-SAME:    avial.shared
// CHECK:         gpu.launch
func.func private @launches(%a: memref<8xf32>) attributes {avial.as_written, avial.arch = "sm_90", avial.task = "launches"} {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c8, %sy = %c1, %sz = %c1) {
    %x = memref.load %a[%tx] : memref<8xf32>
    memref.store %x, %a[%tx] : memref<8xf32>
    gpu.terminator
  }
  return
}

// What has no form in loops says so, and stays.

// CHECK-LABEL: func.func private @softens
// CHECK-SAME:    avial.done = ["normalise-tasks: left as written: {{.*}}"]
// CHECK-SAME:    avial.shared
func.func private @softens(%a: memref<4x8xf32>, %b: memref<4x8xf32>) attributes {avial.as_written, avial.arch = "cpu", avial.task = "softens"} {
  linalg.softmax dimension(1) ins(%a : memref<4x8xf32>) outs(%b : memref<4x8xf32>)
  return
}

func.func @main(%a: memref<8xf32>, %b: memref<8xf32>, %c: memref<8x8xf32>, %d: memref<8x8xf32>, %e: memref<8x8xf32>, %f: memref<4x8xf32>, %g: memref<4x8xf32>) {
  call @scales(%a, %b) : (memref<8xf32>, memref<8xf32>) -> ()
  call @multiplies(%c, %d, %e) : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
  call @calls(%a, %b) : (memref<8xf32>, memref<8xf32>) -> ()
  call @overlaps(%a, %a) : (memref<8xf32>, memref<8xf32>) -> ()
  call @launches(%a) : (memref<8xf32>) -> ()
  call @softens(%f, %g) : (memref<4x8xf32>, memref<4x8xf32>) -> ()
  return
}
