"""The configuration of a model of texts, as Triton serves it."""

from engine.kit.onnx.onnx_files import Input
from engine.kit.triton import config
from engine.kit.triton.config import Signature
from engine.runtimes.backends import Backend


def tensors(**shapes):
    """Return float32 tensors of these shapes, by name."""
    return {name: Input(name, "float32", tuple(shape)) for name, shape in shapes.items()}


SIGNATURE = Signature(
    {name: Input(name, "int64", ("batch", "sequence")) for name in ("input_ids", "attention_mask")},
    tensors(last_hidden_state=("batch", "sequence", 384)),
)


def model(signature=SIGNATURE, **options):
    """Return the configuration of the model `m`, by default on ONNX Runtime in batches of 8."""
    return config.model_config("m", signature, **{"backend": Backend.ONNXRUNTIME, "batch": 8, **options})
