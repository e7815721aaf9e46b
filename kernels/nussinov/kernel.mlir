#past = affine_map<(d) -> (d + 1)>
#id = affine_map<(d) -> (d)>
#back = affine_map<(d)[n] -> (n - 1 - d)>
#has_left = affine_set<(i, j) : (j - 1 >= 0)>
#has_below = affine_set<(i, j)[n] : (n - 2 - i >= 0)>
#has_both = affine_set<(i, j)[n] : (j - 1 >= 0, n - 2 - i >= 0)>
#apart = affine_set<(i, j) : (j - i - 2 >= 0)>
func.func @kernel_nussinov(%seq: memref<${N}xi8>, %table: memref<${N}x${N}x${T}>) {
  ${extents}
  %three = arith.constant 3 : i8
  affine.for %step = 0 to %n {
    %i = affine.apply #back(%step)[%n]
    affine.for %j = #past(%i) to %n {
      affine.if #has_left(%i, %j) {
        %best = affine.load %table[%i, %j] : memref<${N}x${N}x${T}>
        %left = affine.load %table[%i, %j - 1] : memref<${N}x${N}x${T}>
        %better = arith.${max} %best, %left : ${T}
        affine.store %better, %table[%i, %j] : memref<${N}x${N}x${T}>
      }
      affine.if #has_below(%i, %j)[%n] {
        %best = affine.load %table[%i, %j] : memref<${N}x${N}x${T}>
        %below = affine.load %table[%i + 1, %j] : memref<${N}x${N}x${T}>
        %better = arith.${max} %best, %below : ${T}
        affine.store %better, %table[%i, %j] : memref<${N}x${N}x${T}>
      }
      affine.if #has_both(%i, %j)[%n] {
        affine.if #apart(%i, %j) {
          %best = affine.load %table[%i, %j] : memref<${N}x${N}x${T}>
          %inside = affine.load %table[%i + 1, %j - 1] : memref<${N}x${N}x${T}>
          %l = affine.load %seq[%i] : memref<${N}xi8>
          %r = affine.load %seq[%j] : memref<${N}xi8>
          %bases = arith.addi %l, %r : i8
          %pairs = arith.cmpi eq, %bases, %three : i8
          %match = arith.extui %pairs : i1 to ${T}
          %paired = arith.addi %inside, %match : ${T}
          %better = arith.${max} %best, %paired : ${T}
          affine.store %better, %table[%i, %j] : memref<${N}x${N}x${T}>
        } else {
          %best = affine.load %table[%i, %j] : memref<${N}x${N}x${T}>
          %inside = affine.load %table[%i + 1, %j - 1] : memref<${N}x${N}x${T}>
          %better = arith.${max} %best, %inside : ${T}
          affine.store %better, %table[%i, %j] : memref<${N}x${N}x${T}>
        }
      }
      affine.for %k = #past(%i) to #id(%j) {
        %best = affine.load %table[%i, %j] : memref<${N}x${N}x${T}>
        %head = affine.load %table[%i, %k] : memref<${N}x${N}x${T}>
        %tail = affine.load %table[%k + 1, %j] : memref<${N}x${N}x${T}>
        %split = arith.addi %head, %tail : ${T}
        %better = arith.${max} %best, %split : ${T}
        affine.store %better, %table[%i, %j] : memref<${N}x${N}x${T}>
      }
    }
  }
  return
}
