"""The catalogue of GPUs: name, SM, memory, dtypes each can compute in, and where that is written."""

from engine.gpus.catalogue import CATALOGUE, UNSUPPORTED
from engine.gpus.gpu import AMPERE, DTYPES, SOURCES, Gpu, UnsupportedGpu
from engine.gpus.names import called, find, matches, near, with_capability

__all__ = [
    "AMPERE",
    "CATALOGUE",
    "DTYPES",
    "SOURCES",
    "UNSUPPORTED",
    "Gpu",
    "UnsupportedGpu",
    "called",
    "find",
    "matches",
    "near",
    "with_capability",
]  # fmt: skip
