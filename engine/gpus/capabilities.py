"""Compute capabilities: the number types of matrix products, and the first GPUs that compute in each type."""

from __future__ import annotations

DTYPES = ("fp32", "tf32", "fp16", "bf16", "int8", "fp8", "fp4", "int4")
"""Number types of matrix products that a GPU may compute.

For int4, the weights have 4 bits and the multiplication is in fp16.
"""
AMPERE = 80
"""The SM (compute capability times ten) of the first GPUs of the Ampere architecture."""
FIRST_SM = {"tf32": AMPERE, "bf16": AMPERE, "int4": AMPERE, "fp8": 89, "fp4": 100}
"""Number type -> the SM of the first GPUs that compute in it, for types that not every GPU of the catalogue has."""
