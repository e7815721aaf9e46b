// RUN: -p complete-replicates

// CHECK-LABEL: func.func @free
// CHECK: scf.parallel
// CHECK: } {avial.split = array<i64: 0>}
// CHECK: avial.owned0 = array<i64: 2, 20>
func.func @free(%a: memref<20xf64>) {
  %ref = builtin.unrealized_conversion_cast %a : memref<20xf64> to !avial.buffer_ref
  "avial.schedule"(%ref) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %0 = "avial.replicate"(%cpu, %ref) ({
      %zero = arith.constant 0.0 : f64
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c18 = arith.constant 18 : index
      scf.parallel (%i) = (%c0) to (%c18) step (%c1) {
        %k = arith.addi %i, %c2 : index
        memref.store %zero, %a[%k] : memref<20xf64>
      }
      omp.terminator
    }) {name = "s", operandSegmentSizes = array<i32: 1, 0, 1, 0>} : (!avial.target_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref) -> ()
  return
}

// -----

func.func @carried(%a: memref<20xf64>) {
  %ref = builtin.unrealized_conversion_cast %a : memref<20xf64> to !avial.buffer_ref
  "avial.schedule"(%ref) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %0 = "avial.replicate"(%cpu, %ref) ({
      // REFUSED: is written by the previous iteration of
      affine.for %i = 1 to 20 {
        %v = affine.load %a[%i - 1] : memref<20xf64>
        affine.store %v, %a[%i] : memref<20xf64>
      }
      omp.terminator
    }) {name = "s", operandSegmentSizes = array<i32: 1, 0, 1, 0>} : (!avial.target_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref) -> ()
  return
}

// -----

func.func @two_nests(%a: memref<20xf64>) {
  %ref = builtin.unrealized_conversion_cast %a : memref<20xf64> to !avial.buffer_ref
  "avial.schedule"(%ref) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    // REFUSED: a replicate holds one loop nest, and this one holds 2
    %0 = "avial.replicate"(%cpu, %ref) ({
      %zero = arith.constant 0.0 : f64
      affine.for %i = 0 to 20 {
        affine.store %zero, %a[%i] : memref<20xf64>
      }
      affine.for %i = 0 to 20 {
        affine.store %zero, %a[%i] : memref<20xf64>
      }
      omp.terminator
    }) {name = "s", operandSegmentSizes = array<i32: 1, 0, 1, 0>} : (!avial.target_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref) -> ()
  return
}
