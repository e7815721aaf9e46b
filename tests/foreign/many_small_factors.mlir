// Cholesky's factors of many small matrices, and what is left of others by Gauss: triangles whose
// loops are written out, with one iteration or none at their corners.
func.func @factors(%arg0: memref<?x5x5xf64>, %arg1: memref<?x4x4xf64>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %arg0, %c0 : memref<?x5x5xf64>
  affine.for %b = 0 to %n {
    affine.for %i = 0 to 5 {
      affine.for %j = 0 to affine_map<(d) -> (d)>(%i) {
        affine.for %k = 0 to affine_map<(d) -> (d)>(%j) {
          %x = affine.load %arg0[%b, %i, %k] : memref<?x5x5xf64>
          %y = affine.load %arg0[%b, %j, %k] : memref<?x5x5xf64>
          %z = affine.load %arg0[%b, %i, %j] : memref<?x5x5xf64>
          %p = arith.mulf %x, %y : f64
          %s = arith.subf %z, %p : f64
          affine.store %s, %arg0[%b, %i, %j] : memref<?x5x5xf64>
        }
        %d = affine.load %arg0[%b, %j, %j] : memref<?x5x5xf64>
        %z = affine.load %arg0[%b, %i, %j] : memref<?x5x5xf64>
        %q = arith.divf %z, %d : f64
        affine.store %q, %arg0[%b, %i, %j] : memref<?x5x5xf64>
      }
      %e = affine.for %k = 0 to affine_map<(d) -> (d)>(%i) iter_args(%a = %c0) -> index {
        %m = arith.addi %a, %k : index
        affine.yield %m : index
      }
      %f = arith.index_cast %e : index to i64
      %g = arith.sitofp %f : i64 to f64
      %z = affine.load %arg0[%b, %i, %i] : memref<?x5x5xf64>
      %h = arith.addf %z, %g : f64
      affine.store %h, %arg0[%b, %i, %i] : memref<?x5x5xf64>
    }
    affine.for %k = 0 to 4 {
      affine.for %i = affine_map<(d) -> (d + 1)>(%k) to 4 {
        %x = affine.load %arg1[%b, %i, %k] : memref<?x4x4xf64>
        %y = affine.load %arg1[%b, %k, %k] : memref<?x4x4xf64>
        %q = arith.divf %x, %y : f64
        affine.store %q, %arg1[%b, %i, %k] : memref<?x4x4xf64>
        affine.for %j = affine_map<(d) -> (d + 1)>(%k) to 4 {
          %z = affine.load %arg1[%b, %i, %j] : memref<?x4x4xf64>
          %u = affine.load %arg1[%b, %k, %j] : memref<?x4x4xf64>
          %p = arith.mulf %q, %u : f64
          %s = arith.subf %z, %p : f64
          affine.store %s, %arg1[%b, %i, %j] : memref<?x4x4xf64>
        }
      }
    }
  }
  return
}
