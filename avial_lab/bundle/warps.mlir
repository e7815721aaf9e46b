// What threads of a warp and of a block find of each other, in the operations of NVVM and GPU that other compilers
// write: votes, redux, match, shuffles within parts of a warp, barriers with a result, memory of a size that the launch
// gives, copies to shared memory meanwhile, and a print. All warps are full, and none diverges where it exchanges.
func.func @warps(%a: memref<2x64xi32>, %found: memref<15x2x64xi32>, %turned: memref<2x64xi32>,
                 %fetched: memref<2x64xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %bytes = arith.constant 256 : i32
  %all = arith.constant -1 : i32
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %three = arith.constant 3 : i32
  %four = arith.constant 4 : i32
  %thirteen = arith.constant 13 : i32
  %width = arith.constant 32 : i32
  %eights = arith.constant 6175 : i32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %v = memref.load %a[%bx, %tx] : memref<2x64xi32>
    %few = arith.andi %v, %three : i32
    %p = arith.cmpi eq, %few, %zero : i32
    %e = arith.extui %p : i1 to i32
    %first = arith.cmpi eq, %tx, %c0 : index
    scf.if %first { gpu.printf "block %lld of the warps has %d of %d\0A", %bx, %few, %three : index, i32, i32 }
    %r0 = nvvm.vote.sync ballot %all, %p -> i32
    %n0 = arith.constant 0 : index
    memref.store %r0, %found[%n0, %bx, %tx] : memref<15x2x64xi32>
    %f1 = nvvm.vote.sync any %all, %p -> i1
    %r1 = arith.extui %f1 : i1 to i32
    %n1 = arith.constant 1 : index
    memref.store %r1, %found[%n1, %bx, %tx] : memref<15x2x64xi32>
    %r2 = nvvm.redux.sync add %v, %all : i32 -> i32
    %n2 = arith.constant 2 : index
    memref.store %r2, %found[%n2, %bx, %tx] : memref<15x2x64xi32>
    %r3 = nvvm.redux.sync umax %v, %all : i32 -> i32
    %n3 = arith.constant 3 : index
    memref.store %r3, %found[%n3, %bx, %tx] : memref<15x2x64xi32>
    %r4 = nvvm.match.sync any %all, %few : i32 -> i32
    %n4 = arith.constant 4 : index
    memref.store %r4, %found[%n4, %bx, %tx] : memref<15x2x64xi32>
    %pair5 = nvvm.match.sync all %all, %few : i32 -> !llvm.struct<(i32, i1)>
    %x5 = llvm.extractvalue %pair5[0] : !llvm.struct<(i32, i1)>
    %ok5 = llvm.extractvalue %pair5[1] : !llvm.struct<(i32, i1)>
    %r5 = arith.select %ok5, %x5, %zero : i32
    %n5 = arith.constant 5 : index
    memref.store %r5, %found[%n5, %bx, %tx] : memref<15x2x64xi32>
    %p6 = nvvm.elect.sync -> i1
    %r6 = arith.select %p6, %v, %zero : i32
    %n6 = arith.constant 6 : index
    memref.store %r6, %found[%n6, %bx, %tx] : memref<15x2x64xi32>
    %r7 = nvvm.read.ptx.sreg.lanemask.lt : i32
    %n7 = arith.constant 7 : index
    memref.store %r7, %found[%n7, %bx, %tx] : memref<15x2x64xi32>
    %r8 = nvvm.shfl.sync down %all, %v, %three, %eights : i32 -> i32
    %n8 = arith.constant 8 : index
    memref.store %r8, %found[%n8, %bx, %tx] : memref<15x2x64xi32>
    %pair9 = nvvm.shfl.sync up %all, %v, %three, %zero {return_value_and_is_valid}
      : i32 -> !llvm.struct<(i32, i1)>
    %x9 = llvm.extractvalue %pair9[0] : !llvm.struct<(i32, i1)>
    %ok9 = llvm.extractvalue %pair9[1] : !llvm.struct<(i32, i1)>
    %r9 = arith.select %ok9, %x9, %zero : i32
    %n9 = arith.constant 9 : index
    memref.store %r9, %found[%n9, %bx, %tx] : memref<15x2x64xi32>
    %r10, %ok10 = gpu.rotate %v, 3, 4 : i32
    %n10 = arith.constant 10 : index
    memref.store %r10, %found[%n10, %bx, %tx] : memref<15x2x64xi32>
    %r11 = gpu.subgroup_broadcast %v, specific_lane %three : i32
    %n11 = arith.constant 11 : index
    memref.store %r11, %found[%n11, %bx, %tx] : memref<15x2x64xi32>
    %x12, %ok12 = gpu.shuffle xor %v, %four, %thirteen : i32
    %r12 = arith.select %ok12, %x12, %zero : i32
    %n12 = arith.constant 12 : index
    memref.store %r12, %found[%n12, %bx, %tx] : memref<15x2x64xi32>
    %r13 = nvvm.barrier #nvvm.reduction<popc> %e -> i32
    %n13 = arith.constant 13 : index
    memref.store %r13, %found[%n13, %bx, %tx] : memref<15x2x64xi32>
    %wide = arith.extsi %v : i32 to i64
    %f14 = arith.sitofp %wide : i64 to f64
    %x14, %ok14 = gpu.shuffle down %f14, %one, %width : f64
    %r14 = arith.fptosi %x14 : f64 to i32
    %n14 = arith.constant 14 : index
    memref.store %r14, %found[%n14, %bx, %tx] : memref<15x2x64xi32>
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1)
             dynamic_shared_memory_size %bytes {
    %m = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %t = memref.view %m[%c0][%c64] : memref<?xi8, #gpu.address_space<workgroup>>
      to memref<?xi32, #gpu.address_space<workgroup>>
    %v = memref.load %a[%bx, %tx] : memref<2x64xi32>
    memref.store %v, %t[%tx] : memref<?xi32, #gpu.address_space<workgroup>>
    gpu.barrier
    %other = arith.subi %c63, %tx : index
    %r = memref.load %t[%other] : memref<?xi32, #gpu.address_space<workgroup>>
    memref.store %r, %turned[%bx, %tx] : memref<2x64xi32>
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1)
             workgroup(%s : memref<64xi32, #gpu.address_space<workgroup>>) {
    %q = arith.muli %tx, %c2 : index
    %in = arith.cmpi ult, %q, %c64 : index
    scf.if %in {
      %t = nvgpu.device_async_copy %a[%bx, %q], %s[%q], 2, %c1
        : memref<2x64xi32> to memref<64xi32, #gpu.address_space<workgroup>>
      %g = nvgpu.device_async_create_group %t
      nvgpu.device_async_wait %g {numGroups = 0 : i32}
    }
    gpu.barrier
    %other = arith.subi %c63, %tx : index
    %r = memref.load %s[%other] : memref<64xi32, #gpu.address_space<workgroup>>
    memref.store %r, %fetched[%bx, %tx] : memref<2x64xi32>
    gpu.terminator
  }
  return
}
