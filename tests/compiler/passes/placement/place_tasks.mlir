// RUN: -p place-tasks{ranks=2}

// Two tasks at once on a rank each; the third is sent what the second made.

// CHECK-LABEL: func.func @three_tasks(
// CHECK-SAME: %[[A:.*]]: memref<20xi32> {avial.name = "A", avial.offset = 0 : i64, avial.storage = "A"}, %[[B:.*]]: memref<20xi32> {avial.name = "B", avial.offset = 0 : i64, avial.storage = "B"}, %[[C:.*]]: memref<20xi32> {avial.name = "C", avial.offset = 0 : i64, avial.storage = "C"}, %[[D:.*]]: memref<20xi32> {avial.name = "D", avial.offset = 0 : i64, avial.storage = "D"}) attributes {avial.programs = {{\[\[}}"post 0", "run task1", "received 0", "run task3"], ["run task2", "send 0", "sent 0"]], avial.ranks = 2 : i32, avial.storages = [{buffers = ["A"], itemsize = 4 : i64, name = "A", shape = array<i64: 20>}, {buffers = ["B"], itemsize = 4 : i64, name = "B", shape = array<i64: 20>}, {buffers = ["C"], itemsize = 4 : i64, name = "C", shape = array<i64: 20>}, {buffers = ["D"], itemsize = 4 : i64, name = "D", shape = array<i64: 20>}], avial.transfers = [{consumer = "task3", dest = 0 : i32, producer = "task2", source = 1 : i32, start = array<i64: 0>, stop = array<i64: 20>, storage = "D"}]} {
// CHECK-NEXT: %[[A_:.*]] = builtin.unrealized_conversion_cast %[[A]] : memref<20xi32> to !avial.buffer_ref
// CHECK-NEXT: %[[B_:.*]] = builtin.unrealized_conversion_cast %[[B]] : memref<20xi32> to !avial.buffer_ref
// CHECK-NEXT: %[[C_:.*]] = builtin.unrealized_conversion_cast %[[C]] : memref<20xi32> to !avial.buffer_ref
// CHECK-NEXT: %[[D_:.*]] = builtin.unrealized_conversion_cast %[[D]] : memref<20xi32> to !avial.buffer_ref
// CHECK-NEXT: "avial.schedule"(%[[A_]], %[[B_]], %[[C_]], %[[D_]]) ({
// CHECK-NEXT: %[[CPU:.*]] = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
// CHECK-NEXT: %[[TASK1:.*]] = "avial.task"(%[[CPU]], %[[A_]], %[[C_]]) ({
// CHECK-NEXT: memref.copy %[[A]], %[[C]] : memref<20xi32> to memref<20xi32>
// CHECK-NEXT: omp.terminator
// CHECK-NEXT: }) {avial.device = "cpu0", avial.level = 0 : i32, avial.order = 0 : i64, avial.rank = 0 : i32, name = "task1", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (
// CHECK-NEXT: %[[TASK2:.*]] = "avial.task"(%[[CPU]], %[[B_]], %[[D_]]) ({
// CHECK-NEXT: memref.copy %[[B]], %[[D]] : memref<20xi32> to memref<20xi32>
// CHECK-NEXT: omp.terminator
// CHECK-NEXT: }) {avial.device = "cpu1", avial.level = 0 : i32, avial.order = 1 : i64, avial.rank = 1 : i32, name = "task2", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (
// CHECK-NEXT: %[[TASK3:.*]] = "avial.task"(%[[CPU]], %[[C_]], %[[D_]], %[[A_]], %[[B_]]) ({
// CHECK-NEXT: memref.copy %[[C]], %[[B]] : memref<20xi32> to memref<20xi32>
// CHECK-NEXT: memref.copy %[[D]], %[[A]] : memref<20xi32> to memref<20xi32>
// CHECK-NEXT: omp.terminator
// CHECK-NEXT: }) {avial.device = "cpu0", avial.level = 1 : i32, avial.order = 2 : i64, avial.rank = 0 : i32, name = "task3", operandSegmentSizes = array<i32: 1, 2, 2, 0>} : (
// CHECK-NEXT: omp.terminator
// CHECK-NEXT: }) : (
// CHECK-NEXT: return
func.func @three_tasks(%A: memref<20xi32> {avial.name = "A"}, %B: memref<20xi32> {avial.name = "B"}, %C: memref<20xi32> {avial.name = "C"}, %D: memref<20xi32> {avial.name = "D"}) {
  %a = builtin.unrealized_conversion_cast %A : memref<20xi32> to !avial.buffer_ref
  %b = builtin.unrealized_conversion_cast %B : memref<20xi32> to !avial.buffer_ref
  %c = builtin.unrealized_conversion_cast %C : memref<20xi32> to !avial.buffer_ref
  %d = builtin.unrealized_conversion_cast %D : memref<20xi32> to !avial.buffer_ref
  "avial.schedule"(%a, %b, %c, %d) ({
    %cpu = "avial.target"() {arch = "cpu", name = "cpu"} : () -> !avial.target_ref
    %task1 = "avial.task"(%cpu, %a, %c) ({
      memref.copy %A, %C : memref<20xi32> to memref<20xi32>
      omp.terminator
    }) {name = "task1", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    %task2 = "avial.task"(%cpu, %b, %d) ({
      memref.copy %B, %D : memref<20xi32> to memref<20xi32>
      omp.terminator
    }) {name = "task2", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    %task3 = "avial.task"(%cpu, %c, %d, %a, %b) ({
      memref.copy %C, %B : memref<20xi32> to memref<20xi32>
      memref.copy %D, %A : memref<20xi32> to memref<20xi32>
      omp.terminator
    }) {name = "task3", operandSegmentSizes = array<i32: 1, 2, 2, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}

// -----

// A device that no rank has.

func.func @nowhere(%A: memref<20xi32> {avial.name = "A"}, %B: memref<20xi32> {avial.name = "B"}, %C: memref<20xi32> {avial.name = "C"}, %D: memref<20xi32> {avial.name = "D"}) {
  %a = builtin.unrealized_conversion_cast %A : memref<20xi32> to !avial.buffer_ref
  %b = builtin.unrealized_conversion_cast %B : memref<20xi32> to !avial.buffer_ref
  %c = builtin.unrealized_conversion_cast %C : memref<20xi32> to !avial.buffer_ref
  %d = builtin.unrealized_conversion_cast %D : memref<20xi32> to !avial.buffer_ref
  "avial.schedule"(%a, %b, %c, %d) ({
    %gpu = "avial.target"() {arch = "gpu", name = "gpu"} : () -> !avial.target_ref
    // REFUSED: no device satisfies target %gpu
    %task1 = "avial.task"(%gpu, %a, %c) ({
      memref.copy %A, %C : memref<20xi32> to memref<20xi32>
      omp.terminator
    }) {name = "task1", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!avial.target_ref, !avial.buffer_ref, !avial.buffer_ref) -> !avial.task_ref
    omp.terminator
  }) : (!avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref, !avial.buffer_ref) -> ()
  return
}
