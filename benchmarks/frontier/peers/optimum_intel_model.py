"""Optimum Intel int8: the model exported to OpenVINO and quantized with its defaults on sentences."""

from __future__ import annotations

from pathlib import Path

import datasets
import transformers
from answer import answered, request, sentences
from optimum.intel import OVConfig, OVModelForFeatureExtraction, OVQuantizationConfig, OVQuantizer

given = request()
out = Path(given["out"])
tokenizer = transformers.AutoTokenizer.from_pretrained(given["checkpoint"])
model = OVModelForFeatureExtraction.from_pretrained(given["checkpoint"], export=True)
rows = datasets.Dataset.from_dict(dict(tokenizer(sentences(given), truncation=True, max_length=256)))
OVQuantizer.from_pretrained(model).quantize(
    ov_config=OVConfig(quantization_config=OVQuantizationConfig(num_samples=len(rows))),
    calibration_dataset=rows,
    save_directory=out / "int8",
)
answered(given, "openvino", out / "int8" / "openvino_model.xml", ["optimum-intel", "openvino", "nncf", "transformers"])
