"""Olive: export and fusion by `olive run` (fp32), and int8 with dynamic or with static ranges."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from answer import answered, request, sentences

given, kind = request(), sys.argv[2]
out = Path(given["out"])
accelerator = {"device": "cpu", "execution_providers": ["CPUExecutionProvider"]}
configuration = {
    "systems": {"local": {"type": "LocalSystem", "accelerators": [accelerator]}},
    "host": "local",
    "target": "local",
    "cache_dir": "cache",
    "output_dir": "out",
}
conversion = {"type": "OnnxConversion", "use_dynamo_exporter": True, "target_opset": 20}
fusion = {"type": "OrtTransformersOptimization", "model_type": "bert"}
calibration = {
    "name": "calibration",
    "type": "HuggingfaceContainer",
    "load_dataset_config": {"data_name": "json", "data_files": str(out / "texts.json"), "split": "train"},
    "pre_process_data_config": {
        "model_name": given["checkpoint"],
        "input_cols": ["text"],
        "label_col": "label",
        "max_length": 128,
        "padding": "max_length",
    },
    "dataloader_config": {"batch_size": 1},
}
if given["kind"] == "text":
    configuration["input_model"] = {"type": "HfModel", "model_path": given["checkpoint"], "task": given["task"]}
    passes = {"conversion": conversion, "fusion": fusion}
else:
    configuration["input_model"] = {"type": "ONNXModel", "model_path": given["exported"]}
    passes = {}
if kind == "dynamic":
    passes["int8"] = {"type": "OnnxDynamicQuantization", "weight_type": "QInt8", "per_channel": True}
elif kind == "static":
    rows = [json.dumps({"text": text, "label": 0}) for text in sentences(given)]
    (out / "texts.json").write_text("\n".join(rows) + "\n")
    configuration["data_configs"] = [calibration]
    passes["int8"] = {"type": "OnnxStaticQuantization", "data_config": "calibration", "weight_type": "QInt8"}
(out / "olive.json").write_text(json.dumps({**configuration, "passes": passes}))
command = [sys.executable, "-m", "olive", "run", "--config", "olive.json", "--disable_telemetry"]
subprocess.run(command, cwd=out, check=True)
(path,) = (out / "out").rglob("*.onnx")
answered(given, "onnx", path, ["olive-ai", "onnxruntime", "torch", "transformers"])
