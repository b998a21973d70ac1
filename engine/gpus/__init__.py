"""The catalogue of GPUs: name, SM, memory, dtypes each can compute in, and where that is written."""

from engine.gpus.catalogue import CATALOGUE, REFUSED
from engine.gpus.gpu import AMPERE, DTYPES, SOURCES, Gpu, Refused
from engine.gpus.names import called, find, matches, near, with_capability

__all__ = [
    "AMPERE", "CATALOGUE", "DTYPES", "REFUSED", "SOURCES", "Gpu", "Refused", "called", "find",
    "matches", "near", "with_capability",
]  # fmt: skip
