"""Filling: arrays as the inputs of a request, for either protocol of tritonclient."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from engine.client.entry import Entry

if TYPE_CHECKING:
    import numpy as np


def filled(make: Callable[..., Any], entry: Entry, arrays: Mapping[str, np.ndarray]) -> list[Any]:
    """Return those of a model's inputs that there are arrays for; `make` is the protocol's InferInput."""
    inputs = []
    for tensor in entry.inputs:
        if tensor.name in arrays:
            value = make(tensor.name, list(arrays[tensor.name].shape), tensor.datatype)
            value.set_data_from_numpy(arrays[tensor.name])
            inputs.append(value)
    return inputs
