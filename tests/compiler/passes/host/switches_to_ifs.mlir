// RUN: -p switches-to-ifs

// CHECK-LABEL: func.func @one(
// CHECK-SAME: %[[V:.*]]: index
// CHECK: %[[CASE:.*]] = arith.constant 4294967299 : index
// CHECK: %[[IS:.*]] = arith.cmpi eq, %[[V]], %[[CASE]] : index
// CHECK: scf.if %[[IS]] -> (i32) {
// CHECK: } else {
// CHECK: arith.cmpi eq, %[[V]], %c3
// CHECK: scf.if
// CHECK-NOT: index_switch
func.func @one(%v: index, %a: memref<4xi32>) -> i32 {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : i32
  %c8 = arith.constant 8 : i32
  %c9 = arith.constant 9 : i32
  %r = scf.index_switch %v -> i32
  case 4294967299 { scf.yield %c7 : i32 }
  case 3 {
    memref.store %c8, %a[%c0] : memref<4xi32>
    scf.yield %c8 : i32
  }
  default { scf.yield %c9 : i32 }
  return %r : i32
}

// -----

// One in the other; the default alone.

// CHECK-LABEL: func.func @nested(
// CHECK-NOT: index_switch
// CHECK: return
func.func @nested(%v: index, %a: memref<4xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c7 = arith.constant 7 : i32
  scf.index_switch %v
  case -1 {
    scf.index_switch %v
    case -1 {
      memref.store %c7, %a[%c0] : memref<4xi32>
      scf.yield
    }
    default { scf.yield }
    scf.yield
  }
  default {
    scf.index_switch %v
    default {
      memref.store %c7, %a[%c1] : memref<4xi32>
      scf.yield
    }
    memref.store %c7, %a[%c2] : memref<4xi32>
    scf.yield
  }
  return
}
