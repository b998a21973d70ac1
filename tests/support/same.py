"""A model of Triton that returns the numbers that it gets: it is called `same`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import triton_server
from tritonclient import grpc

MODEL = """
import triton_python_backend_utils as triton


class TritonPythonModel:
    def execute(self, requests):
        given = [triton.get_input_tensor_by_name(each, "x").as_numpy() for each in requests]
        return [triton.InferenceResponse([triton.Tensor("y", each)]) for each in given]
"""
CONFIG = """
name: "same" backend: "python" max_batch_size: 0
input { name: "x" data_type: TYPE_INT64 dims: [-1] }
output { name: "y" data_type: TYPE_INT64 dims: [-1] }
"""


def write(repository: Path) -> None:
    """Write a model that returns the numbers that it gets."""
    (repository / "same" / "1").mkdir(parents=True)
    (repository / "same" / "config.pbtxt").write_text(CONFIG)
    (repository / "same" / "1" / "model.py").write_text(MODEL)


def rows(numbers: Sequence[int]) -> list[grpc.InferInput]:
    """Return the numbers as gRPC sends them."""
    return triton_server.inputs(x=np.array(numbers, dtype=np.int64))
