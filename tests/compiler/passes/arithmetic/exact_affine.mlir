// RUN: -p exact-affine

// A value from memory becomes arithmetic; a bound is rounded down, with one more for a rest.

// CHECK-DAG: #[[UP:.*]] = affine_map<(d0) -> (d0 ceildiv 7)>
// CHECK-DAG: #[[DOWN:.*]] = affine_map<()[s0] -> (s0 floordiv 7 + (s0 mod 7 + 6) floordiv 7)>
// CHECK-LABEL: func.func @any_number(
// CHECK: %[[N:.*]] = arith.index_cast
// CHECK: arith.ceildivsi %[[N]], %{{.*}} : index
// CHECK: affine.for %[[I:.*]] = 0 to #[[DOWN]]()
// CHECK: affine.apply #[[UP]](%[[I]])
func.func @any_number(%n: index, %A: memref<9xi64>) {
  affine.for %k = 0 to 9 {
    %a = affine.load %A[%k] : memref<9xi64>
    %m = arith.index_cast %a : i64 to index
    %x = affine.apply affine_map<(d0) -> (d0 ceildiv 7)>(%m)
    %r = arith.index_cast %x : index to i64
    affine.store %r, %A[%k] : memref<9xi64>
  }
  affine.for %i = 0 to affine_map<()[s0] -> (s0 ceildiv 7)>()[%n] {
    %y = affine.apply affine_map<(d0) -> (d0 ceildiv 7)>(%i)
    %r = arith.index_cast %y : index to i64
    affine.store %r, %A[%i] : memref<9xi64>
  }
  return
}
