"""ONNX Runtime's own int8 with its defaults: `dynamic` ranges, or `static` ranges from samples."""

from __future__ import annotations

import sys
from pathlib import Path

import onnxruntime
from answer import answered, request, samples
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process

given, kind = request(), sys.argv[2]
out = Path(given["out"])
source, path = out / "shaped.onnx", out / "model.onnx"
try:
    quant_pre_process(given["exported"], source)
except Exception as error:  # noqa: BLE001 - its symbolic shapes know fewer operators than ONNX has
    print(f"without shapes: {error}")
    source = Path(given["exported"])
names = [value.name for value in onnxruntime.InferenceSession(given["exported"]).get_inputs()]


class Reader(quantization.CalibrationDataReader):
    """Gives one sample after the other."""

    def __init__(self) -> None:
        self.rest = iter(samples(given, names))

    def get_next(self) -> dict | None:
        """Return the next sample, or None behind the last."""
        return next(self.rest, None)


if kind == "dynamic":
    quantization.quantize_dynamic(source, path)
else:
    quantization.quantize_static(source, path, Reader())
answered(given, "onnx", path, ["onnxruntime"])
