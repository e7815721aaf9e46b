#id = affine_map<(d) -> (d)>
#past = affine_map<(d) -> (d + 1)>
#back = affine_map<(d)[n] -> (n - 1 - d)>
func.func @kernel_ludcmp(%A: memref<${N}x${N}x${T}>, %b: memref<${N}x${T}>,
                         %x: memref<${N}x${T}>, %y: memref<${N}x${T}>) {
  ${extents}
  affine.for %i = 0 to %n {
    affine.for %j = 0 to #id(%i) {
      %first = affine.load %A[%i, %j] : memref<${N}x${N}x${T}>
      %w = affine.for %k = 0 to #id(%j) iter_args(%acc = %first) -> (${T}) {
        %l = affine.load %A[%i, %k] : memref<${N}x${N}x${T}>
        %u = affine.load %A[%k, %j] : memref<${N}x${N}x${T}>
        %product = arith.mulf %l, %u : ${T}
        %rest = arith.subf %acc, %product : ${T}
        affine.yield %rest : ${T}
      }
      %pivot = affine.load %A[%j, %j] : memref<${N}x${N}x${T}>
      %quotient = arith.divf %w, %pivot : ${T}
      affine.store %quotient, %A[%i, %j] : memref<${N}x${N}x${T}>
    }
    affine.for %j = #id(%i) to %n {
      %first = affine.load %A[%i, %j] : memref<${N}x${N}x${T}>
      %w = affine.for %k = 0 to #id(%i) iter_args(%acc = %first) -> (${T}) {
        %l = affine.load %A[%i, %k] : memref<${N}x${N}x${T}>
        %u = affine.load %A[%k, %j] : memref<${N}x${N}x${T}>
        %product = arith.mulf %l, %u : ${T}
        %rest = arith.subf %acc, %product : ${T}
        affine.yield %rest : ${T}
      }
      affine.store %w, %A[%i, %j] : memref<${N}x${N}x${T}>
    }
  }
  affine.for %i = 0 to %n {
    %first = affine.load %b[%i] : memref<${N}x${T}>
    %w = affine.for %j = 0 to #id(%i) iter_args(%acc = %first) -> (${T}) {
      %l = affine.load %A[%i, %j] : memref<${N}x${N}x${T}>
      %v = affine.load %y[%j] : memref<${N}x${T}>
      %product = arith.mulf %l, %v : ${T}
      %rest = arith.subf %acc, %product : ${T}
      affine.yield %rest : ${T}
    }
    affine.store %w, %y[%i] : memref<${N}x${T}>
  }
  affine.for %step = 0 to %n {
    %i = affine.apply #back(%step)[%n]
    %first = affine.load %y[%i] : memref<${N}x${T}>
    %w = affine.for %j = #past(%i) to %n iter_args(%acc = %first) -> (${T}) {
      %u = affine.load %A[%i, %j] : memref<${N}x${N}x${T}>
      %v = affine.load %x[%j] : memref<${N}x${T}>
      %product = arith.mulf %u, %v : ${T}
      %rest = arith.subf %acc, %product : ${T}
      affine.yield %rest : ${T}
    }
    %pivot = affine.load %A[%i, %i] : memref<${N}x${N}x${T}>
    %quotient = arith.divf %w, %pivot : ${T}
    affine.store %quotient, %x[%i] : memref<${N}x${T}>
  }
  return
}
