"""The original model, loaded and run through one interface, by PyTorch or by ONNX Runtime."""
