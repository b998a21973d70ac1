"""Installed versions: each counts for the steps that use the package, and for no other."""

from mutations.actions_around import tool
from mutations.graph import split
from mutations.mutation import changes, nothing

from engine.text import distribution

B = "bert"
_NEWER = {
    "tokenizers": "0.23.9",
    "numpy": "2.99",
    "huggingface-hub": "2.99",
    "safetensors": "0.9.9",
    "packaging": "99.0",
    "tqdm": "9.9",
    "regex": "2099.1.1",
    "filelock": "9.9",
    "pyyaml": "9.9",
}
_USED_BY = {
    "torch": "export reference",
    "transformers": "export reference",
    "onnx": "export shape-infer fuse quantize bench package",
    "onnxruntime": "export shape-infer fuse quantize validate bench package",
    "onnxscript": "export",
    "onnx-ir": "export",
    "numpy": "export shape-infer fuse reference quantize validate bench package",
    "ml_dtypes": "export shape-infer fuse quantize bench package",
    "protobuf": "export shape-infer fuse quantize bench package",
    "safetensors": "export reference",
    "sympy": "export shape-infer fuse",
    "tokenizers": "reference package",
    "tritonclient": "package",
}
"""What each step computes with, by its own account of what it does."""
_UNUSED = (
    distribution.NAME, "pydantic", "networkx", "rich", "xxhash", "pyyaml", "pytest", "huggingface-hub",
    "grpcio", "mpmath", "some-package", "filelock", "tensorrt", "regex", "tqdm",
)  # fmt: skip


def _upgraded(name: str):
    causes, spreads = split(_USED_BY[name], f"tools.{name}")
    return changes(f"another {name}", B, tool(name, _NEWER.get(name, "9.9")), causes=causes, spreads=spreads)


TABLE = (
    *(_upgraded(name) for name in _USED_BY),
    *(nothing(f"another {name}", B, tool(name, _NEWER.get(name, "9.9"))) for name in _UNUSED),
)  # fmt: skip
