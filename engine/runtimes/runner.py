"""A runner: whatever answers inputs with outputs, behind one face."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    Tensors = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Runner:
    """A model, ready to run.

    `run` answers inputs with outputs by name. `prepare` does all that need not be timed and returns a call for the
    same inputs, which ends when the answer is there. `active` is the context in which prepared calls are made.
    """

    name: str
    run: Callable[[Tensors], dict[str, np.ndarray]]
    prepare: Callable[[Tensors], Callable[[], object]]
    active: Callable[[], AbstractContextManager[object]] = nullcontext
    takes: Callable[[Mapping[str, tuple[int, ...]]], bool] = lambda _: True
    """Whether it takes inputs of these shapes, by name: an engine takes what its profiles allow."""
