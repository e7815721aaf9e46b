// The dist dialect: memory that is divided over the ranks, between what is computed of it.
//
// Stock MLIR reads it:  mlir-opt --irdl-file=dist.irdl.mlir program.mlir
//
// Source: the RFC "Parallel Tensor Dialect (PTensor)", whose six operations these are, and one more for arrays that the
// caller has. A dtensor is an i64; its memory is that of all ranks, of which each touches its part. A text with these
// operations is one program, not one for each rank: who holds what is found by the ownership runtime. What IRDL cannot
// say (numbers of extents, where a dtensor comes from) is checked by dist-to-runtime.

irdl.dialect @dist {
  // An array of these extents, divided in blocks of its first dimension.
  irdl.operation @alloc_dtensor {
    %index = irdl.is index
    %id = irdl.is i64
    %memory = irdl.base "!builtin.memref"
    irdl.operands(shape: variadic %index)
    irdl.results(dtensor: %id, memory: %memory)
  }

  // The array of the caller in this memory.
  irdl.operation @register_dtensor {
    %memory = irdl.base "!builtin.memref"
    %id = irdl.is i64
    irdl.operands(memory: %memory)
    irdl.results(dtensor: %id)
  }

  irdl.operation @dealloc_dtensor {
    %id = irdl.is i64
    irdl.operands(dtensor: %id)
  }

  // A part of it: the first place in each dimension, then how many, then the steps.
  irdl.operation @create_view {
    %id = irdl.is i64
    %index = irdl.is index
    %view = irdl.is i64
    %memory = irdl.base "!builtin.memref"
    irdl.operands(dtensor: %id, slice: variadic %index)
    irdl.results(view: %view, memory: %memory)
  }

  // The extents of one rank's part: in a loop with the attribute `dist.ranks`, which has an iteration for each rank.
  irdl.operation @local_shape {
    %id = irdl.is i64
    %index = irdl.is index
    irdl.operands(dtensor: %id)
    irdl.results(shape: variadic %index)
  }

  // The elements along the first dimension, which are partial results, are combined by `op`: in the first of them, or
  // in `into`. Pairs of neighbours are combined, and pairs of these, whoever has them: always the same bits.
  irdl.operation @finalize_reduce {
    %id = irdl.is i64
    %other = irdl.is i64
    %op = irdl.base "#builtin.string"
    irdl.attributes {"op" = %op}
    irdl.operands(dtensor: %id, into: optional %other)
  }

  // The elements of one, as they were before, go to the other, which has the same shape.
  irdl.operation @copy_view {
    %from = irdl.is i64
    %to = irdl.is i64
    irdl.operands(from: %from, to: %to)
  }
}
