"""ONNX models: files, external data, shapes, passes."""
