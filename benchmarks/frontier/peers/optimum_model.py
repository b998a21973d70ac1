"""Optimum: the model exported and optimized (O2, O3), or quantized, too, per channel for a kind of CPU."""

from __future__ import annotations

import sys
from pathlib import Path

import onnx
from answer import answered, request
from optimum.onnxruntime import ORTModelForFeatureExtraction, ORTOptimizer, ORTQuantizer, quantization
from optimum.onnxruntime.configuration import AutoOptimizationConfig, AutoQuantizationConfig

given, kind = request(), sys.argv[2]
out = Path(given["out"])
model = ORTModelForFeatureExtraction.from_pretrained(given["checkpoint"], export=True)
packages = ["optimum", "optimum-onnx", "onnxruntime", "torch", "transformers"]
level = kind if kind in {"O2", "O3"} else "O2"
ORTOptimizer.from_pretrained(model).optimize(
    save_dir=out / "optimized", optimization_config=getattr(AutoOptimizationConfig, level)()
)
if level == kind:
    answered(given, "onnx", out / "optimized" / "model_optimized.onnx", packages)
    sys.exit()
configuration = getattr(AutoQuantizationConfig, kind)(is_static=False, per_channel=True)
# ONNX Runtime's quantizer asks for the types of values behind ONNX Runtime's own fused operators, which the file lacks.
# The quantizer's error advises this option, and Optimum has no place for it.
option = {"DefaultTensorType": onnx.TensorProto.FLOAT}
factory = quantization.ONNXQuantizer
quantization.ONNXQuantizer = lambda *args, extra_options, **named: factory(
    *args, extra_options={**extra_options, **option}, **named
)
quantizer = ORTQuantizer.from_pretrained(out / "optimized", file_name="model_optimized.onnx")
quantizer.quantize(save_dir=out / "int8", quantization_config=configuration)
(path,) = (out / "int8").glob("*.onnx")
answered(given, "onnx", path, packages)
