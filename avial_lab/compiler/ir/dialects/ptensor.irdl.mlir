// The ptensor dialect: arrays of a device and a distribution, and what is computed of them.
//
// Stock MLIR reads it:  mlir-opt --irdl-file=ptensor.irdl.mlir program.mlir
//
// Sources: the RFC "Parallel Tensor Dialect (PTensor)"; names of operations as in the Python array API standard.
// An array's memory is a memref; a ptensor is a value that has none until `lower-ptensor` gives it some.
// What IRDL cannot say (shapes, element types) is checked by lower-ptensor.

irdl.dialect @ptensor {
  // tensor: shape and element type, whose integers carry their sign (ui8); device: where it lives; dist: unit where it
  // is divided over the ranks, in blocks of its first dimension.
  irdl.type @ptensor {
    %tensor = irdl.any
    %device = irdl.base "#builtin.string"
    %dist = irdl.any
    irdl.parameters(tensor: %tensor, device: %device, dist: %dist)
  }

  // The values that the array's memory has at this place of the program.
  irdl.operation @load {
    %array = irdl.base "!builtin.memref"
    %value = irdl.base @ptensor::@ptensor
    irdl.operands(array: %array)
    irdl.results(value: %value)
  }

  // The values get memory: all of the array.
  irdl.operation @store {
    %value = irdl.base @ptensor::@ptensor
    %array = irdl.base "!builtin.memref"
    irdl.operands(value: %value, array: %array)
  }

  // Element d of the value goes to element map(d) of the array: assignment to a part.
  irdl.operation @insert {
    %value = irdl.base @ptensor::@ptensor
    %array = irdl.base "!builtin.memref"
    %map = irdl.base "#builtin.affine_map"
    irdl.attributes {"map" = %map}
    irdl.operands(value: %value, array: %array)
  }

  // Element d is element map(d) of the operand: slices with steps of either sign, new axes, transposes, reshapes.
  irdl.operation @view {
    %from = irdl.base @ptensor::@ptensor
    %value = irdl.base @ptensor::@ptensor
    %map = irdl.base "#builtin.affine_map"
    irdl.attributes {"map" = %map}
    irdl.operands(from: %from)
    irdl.results(value: %value)
  }

  // Each element is its own coordinate along dimension `dim`.
  irdl.operation @index {
    %value = irdl.base @ptensor::@ptensor
    %dim = irdl.base "#builtin.integer"
    irdl.attributes {"dim" = %dim}
    irdl.results(value: %value)
  }

  irdl.operation @cast {
    %from = irdl.base @ptensor::@ptensor
    %value = irdl.base @ptensor::@ptensor
    irdl.operands(from: %from)
    irdl.results(value: %value)
  }

  // `op` is a function of the array API; operands of a binary one have one element type and are broadcast.
  irdl.operation @unary {
    %from = irdl.base @ptensor::@ptensor
    %value = irdl.base @ptensor::@ptensor
    %op = irdl.base "#builtin.string"
    irdl.attributes {"op" = %op}
    irdl.operands(from: %from)
    irdl.results(value: %value)
  }

  irdl.operation @binary {
    %left = irdl.base @ptensor::@ptensor
    %right = irdl.base @ptensor::@ptensor
    %value = irdl.base @ptensor::@ptensor
    %op = irdl.base "#builtin.string"
    irdl.attributes {"op" = %op}
    irdl.operands(left: %left, right: %right)
    irdl.results(value: %value)
  }

  irdl.operation @where {
    %condition = irdl.base @ptensor::@ptensor
    %left = irdl.base @ptensor::@ptensor
    %right = irdl.base @ptensor::@ptensor
    %value = irdl.base @ptensor::@ptensor
    irdl.operands(condition: %condition, left: %left, right: %right)
    irdl.results(value: %value)
  }

  // `op` is sum, prod, min, max, any or all, or argmin or argmax along one dimension, whose places
  // are of i64; the dimensions `axes` are gone.
  irdl.operation @reduce {
    %from = irdl.base @ptensor::@ptensor
    %value = irdl.base @ptensor::@ptensor
    %op = irdl.base "#builtin.string"
    %axes = irdl.base "#builtin.dense_array"
    irdl.attributes {"op" = %op, "axes" = %axes}
    irdl.operands(from: %from)
    irdl.results(value: %value)
  }

  // As numpy.matmul: one or two dimensions, or stacks of matrices, which are broadcast.
  irdl.operation @matmul {
    %left = irdl.base @ptensor::@ptensor
    %right = irdl.base @ptensor::@ptensor
    %value = irdl.base @ptensor::@ptensor
    irdl.operands(left: %left, right: %right)
    irdl.results(value: %value)
  }
}
