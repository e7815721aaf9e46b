// RUN: -p share-parts{most=3}

// Two layers are the same part, which takes blocks wherever they begin; what one part alone uses, it allocates.

// CHECK-LABEL: func.func private @layers_part1(
// CHECK-SAME:    memref<4x4xf32>, %{{.*}}: memref<16xf32, strided<[1], offset: ?>>, %{{.*}}: memref<4x4xf32>)
// CHECK-SAME:    attributes {avial.arch = "cpu", avial.as_written, avial.task = "layers_part1", avial.tasks = ["layers"]}
// CHECK-NEXT:    arith.constant
// CHECK-NEXT:    memref.expand_shape
// CHECK-NEXT:    %[[T:.*]] = memref.alloc()
// CHECK-NEXT:    linalg.fill
// CHECK-NEXT:    linalg.matmul
// CHECK-NEXT:    linalg.generic
// CHECK:         return
// CHECK-NOT:     _part2
// CHECK-LABEL: func.func private @layers(
// CHECK-SAME:    attributes {avial.arch = "cpu", avial.shared, avial.task = "layers"}
// CHECK-NOT:     linalg
// CHECK:         %[[H:.*]] = memref.alloc()
// CHECK-NEXT:    call @layers_part1(%{{.*}}, %{{.*}}, %[[H]])
// CHECK-NOT:     memref.alloc
// CHECK:         call @layers_part1(%[[H]], %{{.*}}, %{{.*}})
func.func private @layers(%x: memref<4x4xf32>, %w: memref<2x16xf32>, %y: memref<4x4xf32>) attributes {avial.as_written, avial.arch = "cpu", avial.task = "layers"} {
  %zero = arith.constant 0.0 : f32
  %both = memref.subview %w[0, 0] [2, 16] [1, 1] : memref<2x16xf32> to memref<2x16xf32, strided<[16, 1]>>
  %r0 = memref.subview %both[0, 0] [1, 16] [1, 1] : memref<2x16xf32, strided<[16, 1]>> to memref<16xf32, strided<[1]>>
  %w0 = memref.expand_shape %r0 [[0, 1]] output_shape [4, 4] : memref<16xf32, strided<[1]>> into memref<4x4xf32>
  %r1 = memref.subview %both[1, 0] [1, 16] [1, 1] : memref<2x16xf32, strided<[16, 1]>> to memref<16xf32, strided<[1], offset: 16>>
  %w1 = memref.expand_shape %r1 [[0, 1]] output_shape [4, 4] : memref<16xf32, strided<[1], offset: 16>> into memref<4x4xf32, strided<[4, 1], offset: 16>>
  %s = memref.alloc() : memref<4x4xf32>
  linalg.fill ins(%zero : f32) outs(%s : memref<4x4xf32>)
  linalg.matmul ins(%x, %w0 : memref<4x4xf32>, memref<4x4xf32>) outs(%s : memref<4x4xf32>)
  %h = memref.alloc() : memref<4x4xf32>
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%s : memref<4x4xf32>) outs(%h : memref<4x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %t = math.tanh %a : f32
    linalg.yield %t : f32
  }
  %s2 = memref.alloc() : memref<4x4xf32>
  linalg.fill ins(%zero : f32) outs(%s2 : memref<4x4xf32>)
  linalg.matmul ins(%h, %w1 : memref<4x4xf32>, memref<4x4xf32, strided<[4, 1], offset: 16>>) outs(%s2 : memref<4x4xf32>)
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%s2 : memref<4x4xf32>) outs(%y : memref<4x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %t = math.tanh %a : f32
    linalg.yield %t : f32
  }
  return
}
func.func @two_layers(%x: memref<4x4xf32>, %w: memref<2x16xf32>, %y: memref<4x4xf32>) {
  call @layers(%x, %w, %y) : (memref<4x4xf32>, memref<2x16xf32>, memref<4x4xf32>) -> ()
  return
}

// -----

// A body that does not grow past its measure stays whole, and so does one with loops of its own.

// CHECK-LABEL: func.func private @short(
// CHECK-SAME:    avial.as_written
// CHECK-COUNT-2: linalg.fill
func.func private @short(%a: memref<4xf32>) attributes {avial.as_written, avial.arch = "cpu", avial.task = "short"} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%a : memref<4xf32>)
  linalg.fill ins(%zero : f32) outs(%a : memref<4xf32>)
  return
}
// CHECK-LABEL: func.func private @loops(
// CHECK-SAME:    avial.as_written
// CHECK:         affine.for
func.func private @loops(%a: memref<4xf32>) attributes {avial.as_written, avial.arch = "cpu", avial.task = "loops"} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%a : memref<4xf32>)
  linalg.fill ins(%zero : f32) outs(%a : memref<4xf32>)
  affine.for %i = 0 to 4 {
    affine.store %zero, %a[%i] : memref<4xf32>
  }
  return
}
func.func @whole(%a: memref<4xf32>) {
  call @short(%a) : (memref<4xf32>) -> ()
  call @loops(%a) : (memref<4xf32>) -> ()
  return
}

// -----

// Of memory that one part alone uses it has the views, too: the caller's would be of other memory.

// CHECK-LABEL: func.func private @padded_part1(
// CHECK-SAME:    %[[X:.*]]: memref<4xf32>, %[[Y:.*]]: memref<8xf32>)
// CHECK:         %[[P:.*]] = memref.alloc() : memref<8xf32>
// CHECK-NEXT:    %[[Q:.*]] = memref.subview %[[P]][1] [6] [1]
// CHECK-NEXT:    %[[R:.*]] = memref.subview %[[Q]][1] [4] [1]
// CHECK:         memref.copy %[[X]], %[[R]]
// CHECK-NEXT:    memref.copy %[[P]], %[[Y]]
// CHECK-LABEL: func.func private @padded(
// CHECK-NOT:     memref.alloc
// CHECK:         call @padded_part1
func.func private @padded(%x: memref<4xf32>, %y: memref<8xf32>, %z: memref<8xf32>) attributes {avial.as_written, avial.arch = "cpu", avial.task = "padded"} {
  %zero = arith.constant 0.0 : f32
  %p = memref.alloc() : memref<8xf32>
  %q = memref.subview %p[1] [6] [1] : memref<8xf32> to memref<6xf32, strided<[1], offset: 1>>
  %r = memref.subview %q[1] [4] [1] : memref<6xf32, strided<[1], offset: 1>> to memref<4xf32, strided<[1], offset: 2>>
  linalg.fill ins(%zero : f32) outs(%p : memref<8xf32>)
  memref.copy %x, %r : memref<4xf32> to memref<4xf32, strided<[1], offset: 2>>
  memref.copy %p, %y : memref<8xf32> to memref<8xf32>
  memref.copy %y, %z : memref<8xf32> to memref<8xf32>
  return
}
func.func @padding(%x: memref<4xf32>, %y: memref<8xf32>, %z: memref<8xf32>) {
  call @padded(%x, %y, %z) : (memref<4xf32>, memref<8xf32>, memref<8xf32>) -> ()
  return
}
