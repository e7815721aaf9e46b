"""Functions on tensors as models in ONNX: linalg, tensor, arith and math -> operators of opset 18.

`model.py` begins; `loops.py` has one loop nest, `scalars.py` what stands in its body, `shapes.py`
what moves elements, `graph.py` what is written.
"""
