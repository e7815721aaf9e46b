// RUN: -p split-wraparound

// CHECK-LABEL: func.func @ring
// CHECK: scf.parallel (%[[I:.*]]) =
// CHECK: scf.for %[[FIRST:.*]] = %c0{{.*}} to %c1{{.*}} step
// CHECK: %[[BY:.*]] = arith.constant 9 : index
// CHECK: %[[LEFT:.*]] = arith.addi %[[FIRST]], %[[BY]]
// CHECK: memref.load %{{.*}}[%[[I]], %[[LEFT]]]
// CHECK: scf.for %[[J:.*]] = %c1{{.*}} to %c10{{.*}} step
// CHECK: %[[BY:.*]] = arith.constant -1 : index
// CHECK: arith.addi %[[J]], %[[BY]]
// CHECK-NOT: remui
// CHECK: scf.reduce
func.func @ring(%A: memref<8x10xi64>, %B: memref<8x10xi64>) attributes {avial.no_alias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  %c10 = arith.constant 10 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%c8, %c10) step (%c1, %c1) {
    %before = arith.addi %j, %c9 : index
    %left = arith.remui %before, %c10 : index
    %x = memref.load %A[%i, %left] : memref<8x10xi64>
    memref.store %x, %B[%i, %j] : memref<8x10xi64>
    scf.reduce
  }
  return
}

// What goes round many times stays: no stretch between would be long.

// CHECK-LABEL: func.func @often
// CHECK: scf.parallel (%{{.*}}, %{{.*}}) =
// CHECK: remui
func.func @often(%A: memref<8x3xi64>, %B: memref<8x30xi64>) attributes {avial.no_alias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %c30 = arith.constant 30 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%c8, %c30) step (%c1, %c1) {
    %around = arith.remui %j, %c3 : index
    %x = memref.load %A[%i, %around] : memref<8x3xi64>
    memref.store %x, %B[%i, %j] : memref<8x30xi64>
    scf.reduce
  }
  return
}
