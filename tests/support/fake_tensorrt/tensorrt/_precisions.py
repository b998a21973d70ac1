"""Types by compute capability: what the hardware multiplies.

Sources: Table 33 of NVIDIA's CUDA Programming Guide, "Input Data Types Supported by Tensor Core Acceleration per
Compute Capability" (docs.nvidia.com/cuda/cuda-programming-guide, appendix Compute Capabilities); NVIDIA/TensorRT-LLM
issue 1428 (FP8 on an A100).
"""

_AMPERE = frozenset({"TF32", "HALF", "BF16", "INT8"})
_BLACKWELL = _AMPERE | {"FP8", "FP4"}
HARDWARE = {
    75: frozenset({"HALF", "INT8"}),
    80: _AMPERE, 86: _AMPERE, 87: _AMPERE,
    89: _AMPERE | {"FP8"}, 90: _AMPERE | {"FP8"},
    100: _BLACKWELL, 103: _BLACKWELL, 110: _BLACKWELL, 120: _BLACKWELL, 121: _BLACKWELL,
}  # fmt: skip
"""SM -> the types that its Tensor Cores multiply. INT4 of that table is no weight-only int4, and stays out."""
_JUDGED = ("BF16", "FP8", "FP4")
"""The types for which a builder refuses a network: the other types have kernels without Tensor Cores."""


def refused(kinds, sm):
    """Return the error of a builder on a GPU that lacks one of the types, or ""."""
    lacking = [kind for kind in _JUDGED if kind in kinds and kind not in HARDWARE[sm]]
    return f"Networks with {lacking[0]} precision require hardware with {lacking[0]} support." if lacking else ""
