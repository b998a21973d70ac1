"""TensorRT-RTX: engines that are built without a GPU."""
