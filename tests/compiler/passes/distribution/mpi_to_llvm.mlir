// RUN: -p mpi-to-llvm

// Every step is marked; messages are calls with bytes and a slot for the request; slots are used again.

// CHECK-DAG: llvm.mlir.global external @avial_comm
// CHECK-DAG: llvm.mlir.global external @avial_journal
// CHECK-DAG: llvm.func @MPI_Isend(
// CHECK-NOT: MPI_Isend_c
// CHECK-NOT: MPI_Irecv
// CHECK-LABEL: func.func private @task1.local(
// CHECK-LABEL: func.func @_mlir_ciface_main(
// CHECK-SAME: %[[DESCRIPTOR:.*]]: !llvm.ptr)
// CHECK: %[[TABLE:.*]] = llvm.alloca
// CHECK: %[[FIELDS:.*]] = llvm.load %[[DESCRIPTOR]] : !llvm.ptr -> !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)>
// CHECK: %[[A:.*]] = builtin.unrealized_conversion_cast %[[FIELDS]] : {{.*}} to memref<20x3xf16>
// CHECK: %[[RANK:.*]] = llvm.call @avial.rank()
// CHECK: %[[K0:.*]] = llvm.mlir.constant(0 : i64)
// CHECK-NEXT: llvm.call @avial.begin(%[[K0]])
// CHECK-NEXT: call @task1.local(%[[A]])
// CHECK-NOT: llvm.call @avial.end(
// CHECK: llvm.call @avial.begin(
// CHECK: %[[P:.*]] = llvm.inttoptr
// CHECK: %[[N:.*]] = llvm.mlir.constant(120 : i64)
// CHECK: %[[SLOT:.*]] = llvm.getelementptr %[[TABLE]][0]
// CHECK: llvm.call @avial.isend(%[[P]], %[[N]], %{{.*}}, %{{.*}}, %[[SLOT]])
// CHECK: %[[SLOT2:.*]] = llvm.getelementptr %[[TABLE]][0]
// CHECK: llvm.call @avial.wait(%[[SLOT2]])
// CHECK: %[[SLOT3:.*]] = llvm.getelementptr %[[TABLE]][0]
// CHECK: llvm.call @avial.isend({{.*}}, %[[SLOT3]])
// CHECK: llvm.call @avial.barrier()
// CHECK: llvm.call @avial.end(
// CHECK-NOT: mpi.
// CHECK-NOT: avial.step
func.func private @task1(%a: memref<20x3xf16>) attributes {avial.arch = "cpu"} {
  return
}
func.func @main(%a: memref<20x3xf16>) attributes {avial.ranks = 2 : i32, llvm.emit_c_interface} {
  %comm = mpi.comm_world : !mpi.comm
  %e, %rank = mpi.comm_rank(%comm) : !mpi.retval, i32
  %tag = arith.constant 0 : i32
  func.call @task1(%a) {avial.step = 0 : i64} : (memref<20x3xf16>) -> ()
  %flat = memref.reinterpret_cast %a to offset: [0], sizes: [60], strides: [1] : memref<20x3xf16> to memref<60xf16>
  %e1, %r1 = mpi.isend(%flat, %tag, %rank, %comm) {avial.step = 1 : i64} : memref<60xf16>, i32, i32 -> !mpi.retval, !mpi.request
  %e2 = mpi.wait(%r1) {avial.step = 2 : i64} : !mpi.request -> !mpi.retval
  %e3, %r3 = mpi.isend(%flat, %tag, %rank, %comm) {avial.step = 3 : i64} : memref<60xf16>, i32, i32 -> !mpi.retval, !mpi.request
  %e4 = mpi.wait(%r3) {avial.step = 4 : i64} : !mpi.request -> !mpi.retval
  %e5 = mpi.barrier(%comm) {avial.step = 5 : i64} -> !mpi.retval
  return
}

// -----

// Where a copy and its message meet, the clock is looked at once more: after packing, before unpacking.

// CHECK-LABEL: func.func @_mlir_ciface_copies(
// CHECK: llvm.call @avial.begin(
// CHECK: call @pack.local(
// CHECK: llvm.call @avial.mid(
// CHECK: llvm.call @avial.send(
// CHECK: llvm.call @avial.begin(
// CHECK: llvm.call @avial.recv(
// CHECK: llvm.call @avial.mid(
// CHECK-NEXT: call @pack.local(
// CHECK-NOT: avial.copy
func.func private @pack(%a: memref<8xi8>) {
  return
}
func.func @copies(%a: memref<8xi8>) attributes {avial.ranks = 2 : i32} {
  %comm = mpi.comm_world : !mpi.comm
  %tag = arith.constant 0 : i32
  func.call @pack(%a) {avial.step = 0 : i64, avial.copy = "pack"} : (memref<8xi8>) -> ()
  %e1 = mpi.send(%a, %tag, %tag, %comm) {avial.step = 0 : i64} : memref<8xi8>, i32, i32 -> !mpi.retval
  %e2 = mpi.recv(%a, %tag, %tag, %comm) {avial.step = 1 : i64} : memref<8xi8>, i32, i32 -> !mpi.retval
  func.call @pack(%a) {avial.step = 1 : i64, avial.copy = "unpack"} : (memref<8xi8>) -> ()
  return
}

// -----

// From 2 GiB on a message is counted in 64 bits.

// CHECK-LABEL: func.func @_mlir_ciface_large(
// CHECK: llvm.call @avial.irecv_large(
func.func @large(%a: memref<2147483648xi8>) attributes {avial.ranks = 2 : i32} {
  %comm = mpi.comm_world : !mpi.comm
  %tag = arith.constant 0 : i32
  %e1, %r1 = mpi.irecv(%a, %tag, %tag, %comm) {avial.step = 0 : i64} : memref<2147483648xi8>, i32, i32 -> !mpi.retval, !mpi.request
  %e2 = mpi.wait(%r1) {avial.step = 1 : i64} : !mpi.request -> !mpi.retval
  return
}

// -----

// Functions that are no entry keep what they hold.

// CHECK-LABEL: func.func private @malloc.local(
// CHECK-NEXT: return
func.func private @malloc(%a: memref<4xf32>) {
  return
}
func.func @main() attributes {avial.ranks = 1 : i32} {
  return
}

// -----

// Messages whose wait comes at once need no request.

// CHECK-LABEL: func.func @_mlir_ciface_blocking(
// CHECK-NOT: llvm.alloca
// CHECK: %[[N:.*]] = llvm.mlir.constant(16 : i64)
// CHECK: llvm.call @avial.send(%{{.*}}, %[[N]], %[[T:.*]], %[[T]]) :
// CHECK: llvm.call @avial.recv(
func.func @blocking(%a: memref<4xf32>) attributes {avial.ranks = 2 : i32} {
  %comm = mpi.comm_world : !mpi.comm
  %tag = arith.constant 0 : i32
  %e = mpi.send(%a, %tag, %tag, %comm) : memref<4xf32>, i32, i32 -> !mpi.retval
  %e2 = mpi.recv(%a, %tag, %tag, %comm) : memref<4xf32>, i32, i32 -> !mpi.retval
  return
}

// -----

func.func @allreduce(%a: memref<4xf32>) attributes {avial.ranks = 2 : i32} {
  %comm = mpi.comm_world : !mpi.comm
       // REFUSED: mpi.allreduce is not yet lowered
       %e = mpi.allreduce(%a, %a, MPI_SUM, %comm) : memref<4xf32>, memref<4xf32> -> !mpi.retval
  return
}

// -----

func.func @strided(%a: memref<4xf32, strided<[2]>>) attributes {avial.ranks = 2 : i32} {
  %comm = mpi.comm_world : !mpi.comm
  %tag = arith.constant 0 : i32
    // REFUSED: is not one stretch of known size
    %e, %r = mpi.isend(%a, %tag, %tag, %comm) : memref<4xf32, strided<[2]>>, i32, i32 -> !mpi.retval, !mpi.request
  return
}
