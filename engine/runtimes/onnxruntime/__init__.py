"""ONNX Runtime: runs ONNX models on a CPU, or through an execution provider on GPUs."""
