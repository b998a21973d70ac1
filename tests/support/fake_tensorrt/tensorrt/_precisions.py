"""Types by compute capability: what the hardware multiplies, and of which GPUs TensorRT's own documents speak.

"hardware" is Table 33 of NVIDIA's CUDA Programming Guide, "Input Data Types Supported by Tensor Core Acceleration per
Compute Capability" (docs.nvidia.com/cuda/cuda-programming-guide, appendix Compute Capabilities). "matrix" is NVIDIA's
TensorRT-LLM support matrix (SM75 to SM90, with TensorRT), "rtx" the support matrices of TensorRT-RTX 1.0 to 1.5.
"""

HARDWARE_SOURCE = "CUDA Programming Guide, Table 33; NVIDIA/TensorRT-LLM issue 1428 (FP8 on an A100)"
_AMPERE = frozenset({"TF32", "HALF", "BF16", "INT8"})
_BLACKWELL = _AMPERE | {"FP8", "FP4"}
HARDWARE = {
    75: frozenset({"HALF", "INT8"}),
    80: _AMPERE, 86: _AMPERE, 87: _AMPERE,
    89: _AMPERE | {"FP8"}, 90: _AMPERE | {"FP8"},
    100: _BLACKWELL, 103: _BLACKWELL, 110: _BLACKWELL, 120: _BLACKWELL, 121: _BLACKWELL,
}  # fmt: skip
"""SM -> the types that its Tensor Cores multiply. INT4 of that table is no weight-only int4, and stays out."""
_LISTED = {75: "matrix, rtx", 80: "matrix", 86: "matrix, rtx", 89: "matrix, rtx", 90: "matrix", 120: "rtx", 121: "rtx"}
"""SM -> the documents about the library that have a row for it. Nobody here has read a row for the others."""
_JUDGED = ("BF16", "FP8", "FP4")
"""The types for which a builder refuses a network: the other types have kernels without Tensor Cores."""


def refused(kinds, sm):
    """Return the error of a builder on a GPU that lacks one of the types, or ""."""
    lacking = [kind for kind in _JUDGED if kind in kinds and kind not in HARDWARE[sm]]
    return f"Networks with {lacking[0]} precision require hardware with {lacking[0]} support." if lacking else ""


def unproven(kinds, sm):
    """Return what is open about types on a GPU that no document about the library lists."""
    low = sorted(set(kinds) & {"BF16", "INT8", "FP8", "FP4"})
    if sm in _LISTED or not low:
        return []
    return [f"{' and '.join(low)} on SM{sm}: the hardware has it (Table 33), no support matrix that was read lists it"]


def listing():
    """Return the rules as lines: what each SM multiplies, and which SMs no document about the library lists."""
    rows = [f"SM{sm} multiplies {', '.join(sorted(types))}: {HARDWARE_SOURCE}" for sm, types in HARDWARE.items()]
    return [*rows, *(f"unproven: SM{sm} with TensorRT" for sm in HARDWARE if sm not in _LISTED)]
