module {
  func.func @swapped_buffers(%arg0: memref<?xf64>, %arg1: memref<?xf64>, %arg2: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %cst = arith.constant 0.333 : f64
    %dim = memref.dim %arg0, %c0 : memref<?xf64>
    %0 = arith.subi %dim, %c1 : index
    %1:2 = scf.for %arg3 = %c0 to %arg2 step %c1 iter_args(%arg4 = %arg0, %arg5 = %arg1) -> (memref<?xf64>, memref<?xf64>) {
      scf.for %arg6 = %c1 to %0 step %c1 {
        %2 = arith.subi %arg6, %c1 : index
        %3 = arith.addi %arg6, %c1 : index
        %4 = memref.load %arg4[%2] : memref<?xf64>
        %5 = memref.load %arg4[%arg6] : memref<?xf64>
        %6 = memref.load %arg4[%3] : memref<?xf64>
        %7 = arith.addf %4, %5 : f64
        %8 = arith.addf %7, %6 : f64
        %9 = arith.mulf %8, %cst : f64
        memref.store %9, %arg5[%arg6] : memref<?xf64>
      }
      scf.yield %arg5, %arg4 : memref<?xf64>, memref<?xf64>
    }
    return
  }
}
