"""Runner: one interface to a model that is ready to run, whichever runtime runs it."""

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
    """A model that is ready to run.

    `run` takes inputs by name and returns outputs by name. `prepare` takes inputs, does all work that is not timed, and
    returns a call that computes the outputs of those inputs and waits for them. `active` returns a context manager;
    prepared calls are made in its `with` block.
    """

    name: str
    run: Callable[[Tensors], dict[str, np.ndarray]]
    prepare: Callable[[Tensors], Callable[[], object]]
    active: Callable[[], AbstractContextManager[object]] = nullcontext
    takes: Callable[[Mapping[str, tuple[int, ...]]], bool] = lambda _: True
    """Tells whether the model takes inputs of the shapes in a mapping from an input's name to its shape.

    An engine takes the shapes that its profiles allow.
    """
