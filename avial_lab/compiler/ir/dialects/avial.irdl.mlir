// The avial dialect: tasks, the targets they ask for, and the schedule that holds them.
//
// Stock MLIR reads our printed programs with it:  mlir-opt --irdl-file=avial.irdl.mlir program.mlir
//
// IRDL declares no traits, so a region here ends in omp.terminator, which needs no particular parent;
// what IRDL cannot say (names are unique, a task stands in a schedule, …) is in verify.py.

irdl.dialect @avial {
  irdl.type @target_ref {}
  irdl.type @task_ref {}

  // A buffer as an operand: builtin.unrealized_conversion_cast %a : memref<20xi32> to !avial.buffer_ref.
  // IRDL takes operands of one list to have one type, and buffers have many; bodies use the memref itself.
  irdl.type @buffer_ref {}

  // The buffers it works on, and its tasks in program order.
  irdl.operation @schedule {
    %buffer = irdl.base @avial::@buffer_ref
    %body = irdl.region
    irdl.operands(buffers: variadic %buffer)
    irdl.regions(body: %body)
  }

  // A constraint on a device: {arch = "x86_64", node = "node07"}.
  irdl.operation @target {
    %target = irdl.base @avial::@target_ref
    %string = irdl.base "#builtin.string"
    irdl.attributes {"name" = %string}
    irdl.results(ref: %target)
  }

  // A piece of work that runs on one device. What it reads and writes stands in both lists.
  irdl.operation @task {
    %target = irdl.base @avial::@target_ref
    %task = irdl.base @avial::@task_ref
    %buffer = irdl.base @avial::@buffer_ref
    %string = irdl.base "#builtin.string"
    %body = irdl.region
    irdl.attributes {"name" = %string}
    irdl.operands(target: %target, reads: variadic %buffer, writes: variadic %buffer, after: variadic %task)
    irdl.results(ref: %task)
    irdl.regions(body: %body)
  }

  // A task whose outer parallel loop is split over all devices of its target.
  irdl.operation @replicate {
    %target = irdl.base @avial::@target_ref
    %task = irdl.base @avial::@task_ref
    %buffer = irdl.base @avial::@buffer_ref
    %string = irdl.base "#builtin.string"
    %body = irdl.region
    irdl.attributes {"name" = %string}
    irdl.operands(target: %target, reads: variadic %buffer, writes: variadic %buffer, after: variadic %task)
    irdl.results(ref: %task)
    irdl.regions(body: %body)
  }

  // The tasks in its region, again and again: `max` times, or until `until` holds (a memref of one element,
  // compared by `predicate` = "lt" | "le" | "gt" | "ge" with `threshold`). Without `max` it holds one loop
  // (affine.for, scf.for, scf.while), and the tasks stand in that.
  irdl.operation @converge {
    %task = irdl.base @avial::@task_ref
    %any = irdl.any
    %string = irdl.base "#builtin.string"
    %body = irdl.region
    irdl.attributes {"name" = %string}
    irdl.operands(until: optional %any, after: variadic %task)
    irdl.results(ref: %task)
    irdl.regions(body: %body)
  }
}
