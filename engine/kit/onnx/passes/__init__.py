"""Passes over an ONNX graph, a file each."""
