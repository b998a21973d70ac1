"""TensorRT-RTX: builds engines without a GPU."""
