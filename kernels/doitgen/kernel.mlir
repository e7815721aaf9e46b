func.func @kernel_doitgen(%A: memref<${NR}x${NQ}x${NP}x${T}>, %C4: memref<${NP}x${NP}x${T}>,
                          %sum: memref<${NP}x${T}>) {
  ${extents}
  %zero = arith.constant ${zero} : ${T}
  affine.for %r = 0 to %nr {
    affine.for %q = 0 to %nq {
      affine.for %p = 0 to %np {
        affine.store %zero, %sum[%p] : memref<${NP}x${T}>
        affine.for %s = 0 to %np {
          %old = affine.load %sum[%p] : memref<${NP}x${T}>
          %a = affine.load %A[%r, %q, %s] : memref<${NR}x${NQ}x${NP}x${T}>
          %c = affine.load %C4[%s, %p] : memref<${NP}x${NP}x${T}>
          %product = arith.mul${k} %a, %c : ${T}
          %new = arith.add${k} %old, %product : ${T}
          affine.store %new, %sum[%p] : memref<${NP}x${T}>
        }
      }
      affine.for %p = 0 to %np {
        %new = affine.load %sum[%p] : memref<${NP}x${T}>
        affine.store %new, %A[%r, %q, %p] : memref<${NR}x${NQ}x${NP}x${T}>
      }
    }
  }
  return
}
