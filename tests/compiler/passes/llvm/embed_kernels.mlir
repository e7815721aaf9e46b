// RUN: -p embed-kernels

// Where there is no file of its PTX an image stays empty.

// CHECK: llvm.mlir.global private unnamed_addr constant @S1_kernel.image("\00")
// CHECK: llvm.mlir.global private unnamed_addr constant @S1_kernel.name("S1_kernel\00")
llvm.mlir.global private unnamed_addr constant @S1_kernel.image("\00") : !llvm.array<1 x i8>
llvm.mlir.global private unnamed_addr constant @S1_kernel.name("S1_kernel\00") : !llvm.array<10 x i8>
