// Kernels as other compilers hand them over: by name, in a module of their own, with branches, tokens, warps and
// memory of a size that the launch gives.
module attributes {gpu.container_module} {
  func.func @others(%x: memref<1000xf32>, %rows: memref<8xf32>, %warps: memref<32xf32>, %most: memref<8xi32>,
                    %m: memref<32x64xi32>, %turned: memref<64x32xi32>, %lanes: memref<4x64xi32>) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %bytes = arith.constant 1152 : i32
    %start = gpu.wait async
    %d, %t1 = gpu.alloc async [%start] () : memref<1000xf32, 1>
    %t2 = gpu.memcpy async [%t1] %d, %x : memref<1000xf32, 1>, memref<1000xf32>
    %t3 = gpu.launch_func async [%t2] @kernels::@sums blocks in (%c8, %c1, %c1) threads in (%c128, %c1, %c1)
      args(%d : memref<1000xf32, 1>, %rows : memref<8xf32>, %warps : memref<32xf32>, %most : memref<8xi32>)
    %t4 = gpu.dealloc async [%t3] %d : memref<1000xf32, 1>
    %t5 = gpu.launch_func async [%t4] @kernels::@turn blocks in (%c4, %c2, %c1) threads in (%c16, %c16, %c1)
      dynamic_shared_memory_size %bytes args(%m : memref<32x64xi32>, %turned : memref<64x32xi32>)
    %t6 = gpu.launch_func async [%t5] @kernels::@exchange blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<32x64xi32>, %lanes : memref<4x64xi32>)
    gpu.wait [%t6]
    return
  }
  gpu.module @kernels {
    // Of each warp by shuffles in a loop, of each block by its first warp, and the largest number of all threads.
    gpu.func @sums(%x: memref<1000xf32, 1>, %rows: memref<8xf32>, %warps: memref<32xf32>, %most: memref<8xi32>)
        workgroup(%w: memref<4xf32, 3>) kernel {
      %c0 = arith.constant 0 : index
      %c4 = arith.constant 4 : index
      %c1000 = arith.constant 1000 : index
      %zero = arith.constant 0.0 : f32
      %none = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %c16 = arith.constant 16 : i32
      %c32 = arith.constant 32 : i32
      %i = gpu.global_id x
      %b = gpu.block_id x
      %t = gpu.thread_id x
      %lane = gpu.lane_id
      %warp = gpu.subgroup_id : index
      %in = arith.cmpi ult, %i, %c1000 : index
      cf.cond_br %in, ^load, ^head(%zero, %c16 : f32, i32)
    ^load:
      %a = memref.load %x[%i] : memref<1000xf32, 1>
      cf.br ^head(%a, %c16 : f32, i32)
    ^head(%s: f32, %offset: i32):
      %goes_on = arith.cmpi sgt, %offset, %none : i32
      cf.cond_br %goes_on, ^body, ^done
    ^body:
      %o, %ok = gpu.shuffle xor %s, %offset, %c32 : f32
      %sum = arith.addf %s, %o : f32
      %half = arith.shrsi %offset, %one : i32
      cf.br ^head(%sum, %half : f32, i32)
    ^done:
      %is_first = arith.cmpi eq, %lane, %c0 : index
      cf.cond_br %is_first, ^put, ^together
    ^put:
      memref.store %s, %w[%warp] : memref<4xf32, 3>
      %before = arith.muli %b, %c4 : index
      %at = arith.addi %before, %warp : index
      memref.store %s, %warps[%at] : memref<32xf32>
      cf.br ^together
    ^together:
      gpu.barrier
      %is_first_warp = arith.cmpi eq, %warp, %c0 : index
      cf.cond_br %is_first_warp, ^add, ^largest
    ^add:
      %is_of_warp = arith.cmpi ult, %lane, %c4 : index
      %p = scf.if %is_of_warp -> f32 {
        %q = memref.load %w[%lane] : memref<4xf32, 3>
        scf.yield %q : f32
      } else {
        scf.yield %zero : f32
      }
      %r = gpu.subgroup_reduce add %p cluster(size = 4) : (f32) -> f32
      %is_one = arith.cmpi eq, %t, %c0 : index
      cf.cond_br %is_one, ^store, ^largest
    ^store:
      memref.store %r, %rows[%b] : memref<8xf32>
      cf.br ^largest
    ^largest:
      %number = arith.index_cast %i : index to i32
      %m = gpu.all_reduce maxsi %number uniform {} : (i32) -> i32
      memref.store %m, %most[%b] : memref<8xi32>
      gpu.return
    }
    // A tile turned around, in the last 1088 of the bytes that a block is given.
    gpu.func @turn(%m: memref<32x64xi32>, %turned: memref<64x32xi32>) kernel {
      %bytes = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      %c64 = arith.constant 64 : index
      %tile = memref.view %bytes[%c64][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<16x17xi32, #gpu.address_space<workgroup>>
      %c16 = arith.constant 16 : index
      %bx = gpu.block_id x
      %by = gpu.block_id y
      %tx = gpu.thread_id x
      %ty = gpu.thread_id y
      %top = arith.muli %by, %c16 : index
      %left = arith.muli %bx, %c16 : index
      %row = arith.addi %top, %ty : index
      %column = arith.addi %left, %tx : index
      %v = memref.load %m[%row, %column] : memref<32x64xi32>
      memref.store %v, %tile[%ty, %tx] : memref<16x17xi32, #gpu.address_space<workgroup>>
      gpu.barrier
      %w = memref.load %tile[%tx, %ty] : memref<16x17xi32, #gpu.address_space<workgroup>>
      %to_row = arith.addi %left, %ty : index
      %to_column = arith.addi %top, %tx : index
      memref.store %w, %turned[%to_row, %to_column] : memref<64x32xi32>
      gpu.return
    }
    // The neighbour's value on both sides, the last lane's, and a sum of eight in each group of lanes.
    gpu.func @exchange(%m: memref<32x64xi32>, %lanes: memref<4x64xi32>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %one = arith.constant 1 : i32
      %last = arith.constant 31 : i32
      %c32 = arith.constant 32 : i32
      %none = arith.constant 0 : i32
      %t = gpu.thread_id x
      %v = memref.load %m[%c0, %t] : memref<32x64xi32>
      %u, %has_before = gpu.shuffle up %v, %one, %c32 : i32
      %d, %has_behind = gpu.shuffle down %v, %one, %c32 : i32
      %l, %is_there = gpu.shuffle idx %v, %last, %c32 : i32
      %before = arith.select %has_before, %u, %none : i32
      %behind = arith.select %has_behind, %d, %none : i32
      %s = gpu.subgroup_reduce add %v cluster(size = 8) : (i32) -> i32
      memref.store %before, %lanes[%c0, %t] : memref<4x64xi32>
      memref.store %behind, %lanes[%c1, %t] : memref<4x64xi32>
      memref.store %l, %lanes[%c2, %t] : memref<4x64xi32>
      memref.store %s, %lanes[%c3, %t] : memref<4x64xi32>
      gpu.return
    }
  }
}
