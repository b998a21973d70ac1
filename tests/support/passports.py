"""Passports of engines that were never built."""

from engine.runtimes.tensorrt import passport
from engine.runtimes.tensorrt.passport import Passport, Precision
from engine.runtimes.tensorrt.prepared_graph import EngineTensor, Onnx


def make(**fields):
    """Return the passport of an engine built on a T4, but for what is `said`."""
    return Passport.model_validate({**_T4, **fields})


def save(directory, *, inputs, outputs, profiles=1):
    """Write a passport with these (type, shape) and so many profiles beside an engine."""
    tensors = [{name: EngineTensor(dtype=kind, shape=shape) for name, (kind, shape) in side.items()}
               for side in (inputs, outputs)]  # fmt: skip
    passport.save(directory, make(inputs=tensors[0], outputs=tensors[1], profiles=({},) * profiles))


_T4 = {
    "kind": "tensorrt", "gpu": ("Tesla T4",), "sms": (75,), "tensorrt": "10.13.0.35", "cuda_runtime": "12.9",
    "driver": "580.65.06", "os": "Linux", "arch": "x86_64", "options": {"compatibility": "none"}, "profiles": (),
    "precision": Precision(asked="fp16", network={"fp16": 9}), "inputs": {}, "outputs": {},
    "onnx": Onnx(digest="0" * 32, bytes=1), "bytes": 6,
}  # fmt: skip
