"""Optimum int8: the model exported, optimized, and quantized per channel for a kind of CPU, without calibration."""

from __future__ import annotations

import sys
from pathlib import Path

import onnx
from answer import answered, request
from optimum.onnxruntime import ORTModelForFeatureExtraction, ORTOptimizer, ORTQuantizer, quantization
from optimum.onnxruntime.configuration import AutoQuantizationConfig, OptimizationConfig

given, kind = request(), sys.argv[2]
out = Path(given["out"])
model = ORTModelForFeatureExtraction.from_pretrained(given["checkpoint"], export=True)
ORTOptimizer.from_pretrained(model).optimize(
    save_dir=out / "optimized", optimization_config=OptimizationConfig(optimization_level=2)
)
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
answered(given, "onnx", path, ["optimum", "optimum-onnx", "onnxruntime", "torch", "transformers"])
