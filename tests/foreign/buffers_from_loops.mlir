// A bufferised loop: each turn leaves its result in memory of its own and hands that to the next;
// some of what it allocates is written and never read.
func.func @chained(%arg0: memref<?x6xf32>, %arg1: memref<?x6xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %half = arith.constant 5.0e-01 : f32
  %last = scf.for %t = %c0 to %c5 step %c1 iter_args(%from = %arg0) -> (memref<?x6xf32>) {
    %spare = memref.alloc() : memref<6xf32>
    affine.for %j = 0 to 6 {
      affine.store %half, %spare[%j] : memref<6xf32>
    }
    %row = memref.alloc() : memref<6xf32>
    affine.for %j = 0 to 6 {
      %v = memref.load %from[%c0, %j] : memref<?x6xf32>
      affine.store %v, %row[%j] : memref<6xf32>
    }
    %to = memref.alloc(%n) : memref<?x6xf32>
    affine.for %i = 0 to %n {
      affine.for %j = 0 to 6 {
        %v = memref.load %from[%i, %j] : memref<?x6xf32>
        %w = affine.load %row[5 - %j] : memref<6xf32>
        %s = arith.addf %v, %w : f32
        %m = arith.mulf %s, %half : f32
        memref.store %m, %to[%i, %j] : memref<?x6xf32>
      }
    }
    scf.yield %to : memref<?x6xf32>
  }
  affine.for %i = 0 to %n {
    affine.for %j = 0 to 6 {
      %v = memref.load %last[%i, %j] : memref<?x6xf32>
      memref.store %v, %arg1[%i, %j] : memref<?x6xf32>
    }
  }
  return
}
