"""sentence-transformers: a model for a backend, in `fp32` or in `int8` by its own export helpers: BACKEND KIND."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from answer import answered, request, sentences
from sentence_transformers import SentenceTransformer, backend

given, (engine, kind) = request(), sys.argv[2:4]
out = Path(given["out"]) / "model"
model = SentenceTransformer(given["checkpoint"], backend=engine, device="cpu")
model.save_pretrained(str(out))
file = {}
if kind == "int8" and engine == "onnx":
    backend.export_dynamic_quantized_onnx_model(model, "avx512_vnni", str(out))
    file = {"file_name": "onnx/model_qint8_avx512_vnni.onnx"}
elif kind == "int8":
    # The helper's own default is a data set of the hub; these are the sentences on which the other peers calibrate.
    texts = Path(given["out"]) / "texts"
    texts.mkdir()
    lines = [json.dumps({"sentence": text}) for text in sentences(given)]
    (texts / "train.jsonl").write_text("\n".join(lines) + "\n")
    backend.export_static_quantized_openvino_model(
        model,
        None,
        str(out),
        dataset_name=str(texts),
        dataset_config_name="default",
        dataset_split="train",
        column_name="sentence",
    )
    file = {"file_name": "openvino_model_qint8_quantized.xml"}
packages = {"torch": [], "onnx": ["optimum-onnx", "onnxruntime"], "openvino": ["optimum-intel", "openvino"]}[engine]
answered(
    given,
    "sentence-transformers",
    out,
    ["sentence-transformers", "transformers", "torch", *packages],
    {"backend": engine, "model_kwargs": file},
)
