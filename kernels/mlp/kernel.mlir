#id2 = affine_map<(d0, d1) -> (d0, d1)>
func.func @kernel_mlp(%x: memref<${BATCH}x${IN}x${T}>, %w1: memref<${IN}x${HIDDEN}x${T}>,
                      %b1: memref<${HIDDEN}x${T}>, %w2: memref<${HIDDEN}x${OUT}x${T}>,
                      %b2: memref<${OUT}x${T}>, %h: memref<${BATCH}x${HIDDEN}x${T}>,
                      %y: memref<${BATCH}x${OUT}x${T}>) {
  %zero = arith.constant ${zero} : ${T}
  linalg.broadcast ins(%b1 : memref<${HIDDEN}x${T}>)
      outs(%h : memref<${BATCH}x${HIDDEN}x${T}>) dimensions = [0]
  linalg.matmul ins(%x, %w1 : memref<${BATCH}x${IN}x${T}>, memref<${IN}x${HIDDEN}x${T}>)
      outs(%h : memref<${BATCH}x${HIDDEN}x${T}>)
  linalg.generic {indexing_maps = [#id2], iterator_types = ["parallel", "parallel"]}
      outs(%h : memref<${BATCH}x${HIDDEN}x${T}>) {
  ^bb0(%value: ${T}):
    %positive = arith.${max} %value, %zero : ${T}
    linalg.yield %positive : ${T}
  }
  linalg.broadcast ins(%b2 : memref<${OUT}x${T}>)
      outs(%y : memref<${BATCH}x${OUT}x${T}>) dimensions = [0]
  linalg.matmul ins(%h, %w2 : memref<${BATCH}x${HIDDEN}x${T}>, memref<${HIDDEN}x${OUT}x${T}>)
      outs(%y : memref<${BATCH}x${OUT}x${T}>)
  return
}
