// Sines, cosines and tangents, of arguments near zero and far from it.
func.func @elementary(%x: memref<3000xf32>, %y: memref<3000xf64>,
                      %p: memref<3000xf32>, %q: memref<3000xf64>) {
  affine.for %i = 0 to 3000 {
    %far = arith.constant 1.0e+5 : f32
    %x0 = affine.load %x[%i] : memref<3000xf32>
    %x1 = arith.mulf %x0, %far : f32
    %s = math.sin %x0 : f32
    %c = math.cos %x1 : f32
    %t = math.tan %x1 : f32
    %a = arith.addf %s, %c : f32
    %b = arith.addf %a, %t : f32
    affine.store %b, %p[%i] : memref<3000xf32>
  }
  affine.for %i = 0 to 3000 {
    %far = arith.constant 1.0e+12 : f64
    %y0 = affine.load %y[%i] : memref<3000xf64>
    %y1 = arith.mulf %y0, %far : f64
    %s = math.sin %y1 : f64
    %c = math.cos %y0 : f64
    %t = math.tan %y1 : f64
    %a = arith.addf %s, %c : f64
    %b = arith.addf %a, %t : f64
    affine.store %b, %q[%i] : memref<3000xf64>
  }
  return
}
