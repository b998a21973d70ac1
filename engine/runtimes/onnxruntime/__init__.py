"""ONNX Runtime, on a CPU or through a provider for GPUs."""
