// RUN: -p converge-to-loops

// A number of rounds is a loop that counts.

// CHECK-LABEL: func.func @rounds
// CHECK: "avial.converge"() ({
// CHECK: %[[LAST:.*]] = arith.constant 7 : index
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[LAST]] step
// CHECK-NEXT: "avial.task"
// CHECK: }) {avial.rounds = "7 times", name = "again", operandSegmentSizes = array<i32: 0, 0>}
func.func @rounds(%a: memref<20xf64> {avial.name = "a"}) {
  "avial.schedule"() ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %0 = "avial.converge"() ({
      %1 = "avial.task"(%cpu) ({
        omp.terminator
      }) {name = "t", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!avial.target_ref) -> !avial.task_ref
      omp.terminator
    }) {name = "again", max = 7 : i64, operandSegmentSizes = array<i32: 0, 0>} : () -> !avial.task_ref
    omp.terminator
  }) : () -> ()
  return
}

// -----

// A condition is looked at after each round; a NaN never ends it, the number of rounds does.

// CHECK-LABEL: func.func @until
// CHECK: scf.while (%[[ROUND:.*]] = %{{.*}}) : (index) -> index {
// CHECK: "avial.task"
// CHECK: %[[E:.*]] = memref.load %{{.*}}[] : memref<f64>
// CHECK: %[[DONE:.*]] = arith.cmpf olt, %[[E]], %{{.*}} : f64
// CHECK: %[[NEXT:.*]] = arith.addi %[[ROUND]]
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[NEXT]]
// CHECK: %[[NOT:.*]] = arith.xori %[[DONE]]
// CHECK: %[[AGAIN:.*]] = arith.andi %[[MORE]], %[[NOT]]
// CHECK: scf.condition(%[[AGAIN]]) %[[NEXT]] : index
func.func @until(%e: memref<f64> {avial.name = "e"}) {
  "avial.schedule"() ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %0 = "avial.converge"(%e) ({
      %1 = "avial.task"(%cpu) ({
        omp.terminator
      }) {name = "t", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!avial.target_ref) -> !avial.task_ref
      omp.terminator
    }) {name = "again", max = 100 : i64, predicate = "lt", threshold = 1.0e-6 : f64,
        operandSegmentSizes = array<i32: 1, 0>} : (memref<f64>) -> !avial.task_ref
    omp.terminator
  }) : () -> ()
  return
}
