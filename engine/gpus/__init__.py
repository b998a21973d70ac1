"""The catalogue of GPUs: name, SM, memory, dtypes each can compute in, and where that is written."""

from engine.gpus.catalogue import CATALOGUE, REFUSED
from engine.gpus.gpu import DTYPES, SOURCES, Gpu, Refused
from engine.gpus.names import called, find, matches, near

__all__ = ["CATALOGUE", "DTYPES", "REFUSED", "SOURCES", "Gpu", "Refused", "called", "find", "matches", "near"]
