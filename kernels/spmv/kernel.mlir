func.func @kernel_spmv(%rows: memref<${N+1}xi32>, %columns: memref<${NNZ}xi32>,
                       %values: memref<${NNZ}x${T}>, %x: memref<${M}x${T}>,
                       %y: memref<${N}x${T}>) {
  ${extents}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant ${zero} : ${T}
  scf.for %i = %c0 to %n step %c1 {
    %after = arith.addi %i, %c1 : index
    %start_i32 = memref.load %rows[%i] : memref<${N+1}xi32>
    %stop_i32 = memref.load %rows[%after] : memref<${N+1}xi32>
    %start = arith.index_cast %start_i32 : i32 to index
    %stop = arith.index_cast %stop_i32 : i32 to index
    %sum = scf.for %e = %start to %stop step %c1 iter_args(%acc = %zero) -> (${T}) {
      %column_i32 = memref.load %columns[%e] : memref<${NNZ}xi32>
      %column = arith.index_cast %column_i32 : i32 to index
      %a = memref.load %values[%e] : memref<${NNZ}x${T}>
      %v = memref.load %x[%column] : memref<${M}x${T}>
      %product = arith.mul${k} %a, %v : ${T}
      %next = arith.add${k} %acc, %product : ${T}
      scf.yield %next : ${T}
    }
    memref.store %sum, %y[%i] : memref<${N}x${T}>
  }
  return
}
