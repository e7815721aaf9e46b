module {
  func.func @tensors_inside(%arg0: memref<11x6xf32>, %arg1: memref<6x9xf32>, %arg2: memref<11x9xf32>) {
    %cst = arith.constant 1.500000e+00 : f32
    %0 = bufferization.to_tensor %arg0 restrict : memref<11x6xf32> to tensor<11x6xf32>
    %1 = bufferization.to_tensor %arg1 restrict : memref<6x9xf32> to tensor<6x9xf32>
    %2 = tensor.empty() : tensor<11x9xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<11x9xf32>) -> tensor<11x9xf32>
    %4 = linalg.matmul ins(%0, %1 : tensor<11x6xf32>, tensor<6x9xf32>) outs(%3 : tensor<11x9xf32>) -> tensor<11x9xf32>
    bufferization.materialize_in_destination %4 in restrict writable %arg2 : (tensor<11x9xf32>, memref<11x9xf32>) -> ()
    return
  }
}
