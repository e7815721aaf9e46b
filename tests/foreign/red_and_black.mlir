#set = affine_set<(d0, d1) : ((d0 + d1) mod 2 == 0)>
#set1 = affine_set<(d0)[s0] : (d0 == 0)>
#set2 = affine_set<(d0, d1)[s0] : (d0 - 1 >= 0, -d0 + s0 - 2 >= 0, d1 - 1 >= 0, -d1 + 9 >= 0)>
module {
  func.func @red_and_black(%arg0: memref<?x11xf32>, %arg1: i32) {
    %c0 = arith.constant 0 : index
    %cst = arith.constant 2.500000e-01 : f32
    %cst_0 = arith.constant 1.000000e+00 : f32
    %dim = memref.dim %arg0, %c0 : memref<?x11xf32>
    %0 = arith.index_cast %arg1 : i32 to index
    affine.for %arg2 = 0 to %0 {
      affine.for %arg3 = 0 to %dim {
        affine.for %arg4 = 0 to 11 {
          affine.if #set2(%arg3, %arg4)[%dim] {
            affine.if #set(%arg3, %arg4) {
              %1 = affine.load %arg0[%arg3 - 1, %arg4] : memref<?x11xf32>
              %2 = affine.load %arg0[%arg3 + 1, %arg4] : memref<?x11xf32>
              %3 = affine.load %arg0[%arg3, %arg4 - 1] : memref<?x11xf32>
              %4 = affine.load %arg0[%arg3, %arg4 + 1] : memref<?x11xf32>
              %5 = arith.addf %1, %2 : f32
              %6 = arith.addf %3, %4 : f32
              %7 = arith.addf %5, %6 : f32
              %8 = arith.mulf %7, %cst : f32
              affine.store %8, %arg0[%arg3, %arg4] : memref<?x11xf32>
            }
          }
        }
      }
      affine.for %arg3 = 0 to %dim {
        affine.for %arg4 = 0 to 11 {
          affine.if #set1(%arg3)[%dim] {
            affine.store %cst_0, %arg0[%arg3, %arg4] : memref<?x11xf32>
          } else {
            %1 = affine.load %arg0[%arg3, %arg4] : memref<?x11xf32>
            %2 = arith.cmpf olt, %1, %cst_0 : f32
            %3 = scf.if %2 -> (f32) {
              %4 = arith.addf %1, %cst : f32
              scf.yield %4 : f32
            } else {
              scf.yield %cst : f32
            }
            affine.store %3, %arg0[%arg3, %arg4] : memref<?x11xf32>
          }
        }
      }
    }
    return
  }
}
