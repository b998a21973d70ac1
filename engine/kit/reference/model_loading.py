"""Loading of models: the options of a classifying head, one seed for random heads, and libraries that say nothing."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from typing import TypedDict

_SEED = 20
"""The seed of random heads, because the steps `reference` and `export` must load a head with equal weights."""


class HeadOptions(TypedDict, total=False):
    """The fields of a recipe's `model:` section about the head: keyword arguments of functions that load a model."""

    num_labels: int | None
    """The number of classes that the head tells apart; None stands for the number in config.json."""
    random_head: bool
    """Whether the head may have random weights where the checkpoint has no weights that fit the head."""


@contextlib.contextmanager
def seeded() -> Iterator[None]:
    """Seed torch's random numbers within the block, and restore their state afterwards."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED)
        yield


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Turn off log messages and warnings of all libraries."""
    silenced = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(silenced)
