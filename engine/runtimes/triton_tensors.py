"""Tensors as Triton's configurations describe them: the names of their types, and which axis is the batch."""

from __future__ import annotations

from collections.abc import Mapping

TYPES: Mapping[str, str] = {
    "bool": "TYPE_BOOL", "float16": "TYPE_FP16", "float32": "TYPE_FP32", "float64": "TYPE_FP64",
    "bfloat16": "TYPE_BF16", "object": "TYPE_STRING",
    **{f"{sign}int{bits}": f"TYPE_{sign.upper()}INT{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip
"""The name of a type in numpy -> its name in Triton's ModelConfig."""
BYTES: Mapping[str, int] = {
    "BOOL": 1, "FP16": 2, "BF16": 2, "FP32": 4, "FP64": 8,
    **{f"{sign}INT{bits}": bits // 8 for sign in ("", "U") for bits in (8, 16, 32, 64)},
}  # fmt: skip
"""Bytes of a value, by its datatype in the KServe v2 protocol; texts (BYTES) have no fixed size."""
TEXT, IMAGE = "TEXT", "IMAGE"
"""The inputs of a package that takes texts in UTF-8, or the bytes of image files."""
MAX_NEW_TOKENS, STOP = "MAX_NEW_TOKENS", "STOP"
"""The optional inputs of a package that generates text."""


def is_batch(axis: str) -> bool:
    """Tell whether the name of an axis says that it is the batch: "batch_size", "N", "b".

    Only an axis with the name of a batch counts as the batch, because the first axis of a recurrent model may be time,
    and Triton would join requests along the time axis.
    """
    return "batch" in axis.lower() or axis.lower() in {"n", "b"}
