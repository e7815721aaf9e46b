// RUN: -p select-math

// CHECK: module attributes {avial.functions}
// CHECK-LABEL: func.func @in_a_loop(
// CHECK: %[[X:.*]] = affine.load
// CHECK: math.exp %[[X]] {avial.expand = "fused"} : f64
// CHECK: math.erf %{{.*}} {avial.expand = "fused"} : f64
func.func @in_a_loop(%a: memref<9xf64>) {
  affine.for %i = 0 to 9 {
    %x = affine.load %a[%i] : memref<9xf64>
    %y = math.exp %x : f64
    %z = math.erf %y : f64
    affine.store %z, %a[%i] : memref<9xf64>
  }
  return
}

// -----

// CHECK-LABEL: func.func @leaves_what_is_computed_once(
// CHECK: math.exp %{{.*}} : f64
// CHECK-NOT: avial.expand
func.func @leaves_what_is_computed_once(%x: f64) -> f64 {
  %y = math.exp %x : f64
  return %y : f64
}

// -----

// CHECK-LABEL: func.func private @of_loops(
// CHECK: math.log %{{.*}} {avial.expand = "fused"} : f32
func.func private @of_loops(%x: f32) -> f32 {
  %y = math.log %x : f32
  return %y : f32
}

// -----

// A loop of one iteration is written out, and the function would be MLIR's own of a constant.

// CHECK-LABEL: func.func @a_number_that_may_be_known(
// CHECK: %[[X:.*]] = arith.sitofp
// CHECK: %[[SAME:.*]] = math.fma %[[X]], %{{.*}}, %{{.*}} : f32
// CHECK: math.exp %[[SAME]] {avial.expand = "fused"} : f32
func.func @a_number_that_may_be_known(%a: memref<1xf32>) {
  affine.for %i = 0 to 1 {
    %n = arith.index_cast %i : index to i32
    %x = arith.sitofp %n : i32 to f32
    %y = math.exp %x : f32
    affine.store %y, %a[%i] : memref<1xf32>
  }
  return
}

// -----

// CHECK-LABEL: func.func @named_operations(
// CHECK: linalg.generic
// CHECK: math.exp %{{.*}} {avial.expand = "fused"} : f32
func.func @named_operations(%A: memref<2x3xf32>, %B: memref<2x3xf32>) {
  linalg.exp ins(%A : memref<2x3xf32>) outs(%B : memref<2x3xf32>)
  return
}

// -----

// CHECK-LABEL: func.func @vectors(
// CHECK: math.exp %{{.*}} {avial.expand = "fused"} : vector<4xf32>
func.func @vectors(%a: memref<9xvector<4xf32>>) {
  affine.for %i = 0 to 9 {
    %x = affine.load %a[%i] : memref<9xvector<4xf32>>
    %y = math.exp %x : vector<4xf32>
    affine.store %y, %a[%i] : memref<9xvector<4xf32>>
  }
  return
}

// -----

// CHECK-LABEL: func.func @leaves_others(
// CHECK: math.exp %{{[a-z0-9_]+}} : f16
// CHECK: math.acosh %{{[a-z0-9_]+}} : f64
// CHECK-NOT: avial.expand
func.func @leaves_others(%a: memref<9xf16>, %b: memref<9xf64>) {
  affine.for %i = 0 to 9 {
    %x = affine.load %a[%i] : memref<9xf16>
    %y = math.exp %x : f16
    affine.store %y, %a[%i] : memref<9xf16>
    %v = affine.load %b[%i] : memref<9xf64>
    %w = math.acosh %v : f64
    affine.store %w, %b[%i] : memref<9xf64>
  }
  return
}

// -----

// CHECK-LABEL: func.func @once(
// CHECK-NOT: avial.expand
module attributes {avial.functions} {
func.func @once(%a: memref<9xf64>) {
  affine.for %i = 0 to 9 {
    %x = affine.load %a[%i] : memref<9xf64>
    %y = math.exp %x : f64
    affine.store %y, %a[%i] : memref<9xf64>
  }
  return
}
}

// -----

// A GPU has the same code, for arguments of any size.

// CHECK-LABEL: func.func @in_a_kernel(
// CHECK: math.exp %{{.*}} {avial.expand = "fused"} : f64
// CHECK-COUNT-2: math.sin %{{[a-z0-9_]+}} {avial.expand = "fused"} : f64
func.func @in_a_kernel(%a: memref<9xf64>) {
  %one = arith.constant 1 : index
  %nine = arith.constant 9 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %nine, %sy = %one, %sz = %one) {
    %x = memref.load %a[%tx] : memref<9xf64>
    %y = math.exp %x : f64
    %z = math.sin %y : f64
    memref.store %z, %a[%tx] : memref<9xf64>
    gpu.terminator
  }
  affine.for %i = 0 to 9 {
    %x = affine.load %a[%i] : memref<9xf64>
    %y = math.sin %x : f64
    affine.store %y, %a[%i] : memref<9xf64>
  }
  return
}

// -----

// CHECK-LABEL: func.func @rows_of_lanes_have_a_limit(
// CHECK: math.sin %{{[a-z0-9_]+}} : vector<2x4xf32>
// CHECK: math.exp %{{.*}} {avial.expand = "fused"} : vector<2x4xf32>
// CHECK: math.cos %{{.*}} {avial.expand = "fused"} : vector<4xf32>
func.func @rows_of_lanes_have_a_limit(%a: memref<9xvector<2x4xf32>>, %b: memref<9xvector<4xf32>>) {
  affine.for %i = 0 to 9 {
    %x = affine.load %a[%i] : memref<9xvector<2x4xf32>>
    %y = math.sin %x : vector<2x4xf32>
    %z = math.exp %y : vector<2x4xf32>
    affine.store %z, %a[%i] : memref<9xvector<2x4xf32>>
    %v = affine.load %b[%i] : memref<9xvector<4xf32>>
    %w = math.cos %v : vector<4xf32>
    affine.store %w, %b[%i] : memref<9xvector<4xf32>>
  }
  return
}

// -----

// CHECK-LABEL: func.func @powers(
// CHECK: math.powf %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} {avial.expand = "fused"} : f64
// CHECK: math.powf %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : f64
// CHECK: math.powf %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} {avial.expand = "fused"} : f64
func.func @powers(%a: memref<9xf64>) {
  %two = arith.constant 2.0 : f64
  %three = arith.constant 3.0 : f64
  affine.for %i = 0 to 9 {
    %x = affine.load %a[%i] : memref<9xf64>
    %y = math.powf %two, %x : f64
    %z = math.powf %y, %two : f64
    %w = math.powf %z, %three : f64
    affine.store %w, %a[%i] : memref<9xf64>
  }
  return
}

// -----

// CHECK-LABEL: func.func @easy_powers_of_vectors(
// CHECK: math.powf %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : vector<4xf32>
// CHECK: math.powf %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} {avial.expand = "fused"} : vector<4xf32>
func.func @easy_powers_of_vectors(%a: memref<9xvector<4xf32>>) {
  %half = arith.constant dense<0.5> : vector<4xf32>
  %more = arith.constant dense<[0.5, 0.5, 0.5, 2.0]> : vector<4xf32>
  affine.for %i = 0 to 9 {
    %x = affine.load %a[%i] : memref<9xvector<4xf32>>
    %y = math.powf %x, %half : vector<4xf32>
    %z = math.powf %y, %more : vector<4xf32>
    affine.store %z, %a[%i] : memref<9xvector<4xf32>>
  }
  return
}

// -----

// One operand that stays unknown is enough; of numbers that may all be known the first is hidden.

// CHECK-LABEL: func.func @of_two_operands(
// CHECK: %[[X:.*]] = affine.load
// CHECK: math.powf %[[X]], %[[N:[a-z0-9_]+]] {avial.expand
// CHECK: %[[SAME:.*]] = math.fma %[[N]], %{{.*}}, %{{.*}} : f32
// CHECK: math.powf %[[SAME]], %[[N]] {avial.expand
func.func @of_two_operands(%a: memref<1xf32>, %b: memref<1xf32>) {
  affine.for %i = 0 to 1 {
    %k = arith.index_cast %i : index to i32
    %n = arith.sitofp %k : i32 to f32
    %x = affine.load %a[%i] : memref<1xf32>
    %y = math.powf %x, %n : f32
    affine.store %y, %a[%i] : memref<1xf32>
    %z = math.powf %n, %n : f32
    affine.store %z, %b[%i] : memref<1xf32>
  }
  return
}
