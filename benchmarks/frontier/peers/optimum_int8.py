"""Optimum int8: the model exported, optimized, and quantized per channel for AVX-512 VNNI, without calibration."""

from __future__ import annotations

from pathlib import Path

from answer import answered, request
from optimum.onnxruntime import ORTModelForFeatureExtraction, ORTOptimizer, ORTQuantizer
from optimum.onnxruntime.configuration import AutoQuantizationConfig, OptimizationConfig

given = request()
out = Path(given["out"])
model = ORTModelForFeatureExtraction.from_pretrained(given["checkpoint"], export=True)
ORTOptimizer.from_pretrained(model).optimize(
    save_dir=out / "optimized", optimization_config=OptimizationConfig(optimization_level=2)
)
configuration = AutoQuantizationConfig.avx512_vnni(is_static=False, per_channel=True)
try:
    optimized = ORTQuantizer.from_pretrained(out / "optimized", file_name="model_optimized.onnx")
    optimized.quantize(save_dir=out / "int8", quantization_config=configuration)
except RuntimeError as error:
    # ONNX Runtime 1.31 infers no types behind its own fused operators. It fuses when it loads a model, too.
    print(f"without ORTOptimizer: {error}")
    ORTQuantizer.from_pretrained(model).quantize(save_dir=out / "int8", quantization_config=configuration)
(path,) = (out / "int8").glob("*.onnx")
answered(given, "onnx", path, ["optimum", "optimum-onnx", "onnxruntime", "torch", "transformers"])
