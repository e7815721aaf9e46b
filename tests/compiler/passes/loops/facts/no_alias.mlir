// RUN: -p no-alias

// Each call gives it two of the entry's own arrays, here also through a view: they share no memory.

// CHECK: func.func private @apart(%{{.*}}: memref<8xf64>, %{{.*}}: memref<8xf64>) attributes {avial.no_alias}
func.func private @apart(%a: memref<8xf64>, %b: memref<8xf64>) {
  return
}

// One call gives it the same array twice.

// CHECK: func.func private @twice(%{{.*}}: memref<8xf64>, %{{.*}}: memref<8xf64>) {
func.func private @twice(%a: memref<8xf64>, %b: memref<8xf64>) {
  return
}

// Two windows of one array may overlap.

// CHECK: func.func private @windows(%{{.*}}: memref<8xf64>, %{{.*}}: memref<8xf64>) {
func.func private @windows(%a: memref<8xf64>, %b: memref<8xf64>) {
  return
}

// Nobody knows where this one's arrays come from.

// CHECK: func.func private @uncalled(%{{.*}}: memref<8xf64>, %{{.*}}: memref<8xf64>) {
func.func private @uncalled(%a: memref<8xf64>, %b: memref<8xf64>) {
  return
}

// CHECK: func.func @main
func.func @main(%A: memref<8xf64>, %B: memref<8xf64>, %C: memref<16xf64>) {
  %c0 = arith.constant 0 : index
  %low = memref.subview %C[0] [8] [1] : memref<16xf64> to memref<8xf64, strided<[1]>>
  %first = memref.cast %low : memref<8xf64, strided<[1]>> to memref<8xf64>
  %second = memref.reinterpret_cast %C to offset: [0], sizes: [8], strides: [1]
    : memref<16xf64> to memref<8xf64>
  call @apart(%A, %B) : (memref<8xf64>, memref<8xf64>) -> ()
  call @apart(%A, %first) : (memref<8xf64>, memref<8xf64>) -> ()
  call @twice(%A, %B) : (memref<8xf64>, memref<8xf64>) -> ()
  call @twice(%B, %B) : (memref<8xf64>, memref<8xf64>) -> ()
  call @windows(%first, %second) : (memref<8xf64>, memref<8xf64>) -> ()
  return
}
