// The distir dialect: where tensors lie, as the encoding of their types, and what moves them.
//
// Stock MLIR reads it:  mlir-opt --irdl-file=distir.irdl.mlir program.mlir
//
// Source: DistIR's README ("An IR to represent distributed computations"). Operations are upstream's
// (linalg, tensor, arith, math); without the encodings and the moves the sequential function is left.
// What IRDL cannot say (axes and shapes fit, which placements an operation takes) is checked by
// analysis/placements.

irdl.dialect @distir {
  // The placement of a tensor: a mesh, and for each of its axes `copy`, `split DIM` (in blocks), or
  // `sum`, `max`, `min`: every device holds a partial result. Shapes are those of the whole tensor.
  irdl.attribute @on {
    %mesh = irdl.base "#builtin.symbol_ref"
    %axes = irdl.base "#builtin.string"
    irdl.parameters(mesh: %mesh, axes: %axes)
  }

  // A grid of devices, numbered like ranks. With `turns` = N it has a last axis that is time: what is
  // split along it, is computed in N turns on the same devices (micro-batches).
  irdl.operation @mesh {
    %name = irdl.base "#builtin.string"
    %devices = irdl.any
    irdl.attributes {"sym_name" = %name, "devices" = %devices}
  }

  // Each device's partial result, combined: on every device, or divided (reduce_scatter).
  irdl.operation @all_reduce { %from = irdl.any %to = irdl.any irdl.operands(from: %from) irdl.results(to: %to) }
  irdl.operation @reduce_scatter { %from = irdl.any %to = irdl.any irdl.operands(from: %from) irdl.results(to: %to) }
  // What is divided, on every device; or divided along another dimension.
  irdl.operation @all_gather { %from = irdl.any %to = irdl.any irdl.operands(from: %from) irdl.results(to: %to) }
  irdl.operation @all_to_all { %from = irdl.any %to = irdl.any irdl.operands(from: %from) irdl.results(to: %to) }
  // What is on every device, divided: each keeps its block.
  irdl.operation @scatter { %from = irdl.any %to = irdl.any irdl.operands(from: %from) irdl.results(to: %to) }
  // From one mesh to another, where it lies in the same way.
  irdl.operation @send { %from = irdl.any %to = irdl.any irdl.operands(from: %from) irdl.results(to: %to) }
  // Between a mesh of one device and any other.
  irdl.operation @broadcast { %from = irdl.any %to = irdl.any irdl.operands(from: %from) irdl.results(to: %to) }
  irdl.operation @gather { %from = irdl.any %to = irdl.any irdl.operands(from: %from) irdl.results(to: %to) }
  irdl.operation @reduce { %from = irdl.any %to = irdl.any irdl.operands(from: %from) irdl.results(to: %to) }
  // Any of them.
  irdl.operation @reshard { %from = irdl.any %to = irdl.any irdl.operands(from: %from) irdl.results(to: %to) }
}
