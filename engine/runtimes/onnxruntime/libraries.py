"""The libraries of TensorRT that ONNX Runtime's TensorRT provider loads, and that its wheel does not bring."""

from engine.gpus.libraries import Libraries

TENSORRT_MAJOR = "10"
"""The major version of TensorRT that the TensorRT provider loads. Source: the wheels (typed_networks.py names them)."""
TENSORRT = Libraries(
    title=f"TensorRT {TENSORRT_MAJOR}",
    names=(f"libnvinfer.so.{TENSORRT_MAJOR}", f"libnvonnxparser.so.{TENSORRT_MAJOR}"),
    distribution="tensorrt",
    version=f"{TENSORRT_MAJOR}.x",
)
"""Source: `readelf -d libonnxruntime_providers_tensorrt.so`, in the wheel of onnxruntime-gpu 1.31.1."""
