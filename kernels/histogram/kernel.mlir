func.func @kernel_histogram(%data: memref<${N}xi32>, %counts: memref<${BINS}x${T}>) {
  ${extents}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : ${T}
  %one = arith.constant 1 : ${T}
  scf.for %b = %c0 to %bins step %c1 {
    memref.store %zero, %counts[%b] : memref<${BINS}x${T}>
  }
  scf.for %i = %c0 to %n step %c1 {
    %value = memref.load %data[%i] : memref<${N}xi32>
    %bin = arith.index_cast %value : i32 to index
    %count = memref.load %counts[%bin] : memref<${BINS}x${T}>
    %more = arith.addi %count, %one : ${T}
    memref.store %more, %counts[%bin] : memref<${BINS}x${T}>
  }
  return
}
