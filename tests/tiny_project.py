"""What the tests around a tiny model share: its recipe, its samples, and the jobs that they become."""

import json

CHAIN = ("fetch", "export", "reference", "shape-infer", "fuse", "quantize", "validate", "bench", "package")
RECIPE = """\
name: tiny
model: {source: model}
precision: int8
profiles:
  - {batch: [1, 1, 4], sequence: [1, 16, 32]}
validate:
  samples: samples.jsonl
  cosine: {at_least: 0.5}
  agreement: {at_least: 0.1}
bench:
  shapes: [{batch: 1, sequence: 8}]
  against: [{runtime: onnxruntime}]
"""
SAMPLES = "".join(json.dumps({"text": text}) + "\n" for text in ("a good film", "the plot was bad", "where is it?"))
HEAVY = {"torch", "transformers", "onnx", "onnxruntime", "numpy", "pydantic", "networkx", "yaml", "rich"}
"""What an up-to-date build must not import."""
