"""Probes: made-up inputs with which a model is traced, and on which its graph is compared with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from engine.kit import timm_models, token_rows, torch_models

if TYPE_CHECKING:
    import numpy as np
    import torch

    Tensors = dict[str, np.ndarray]


def example(module: torch.nn.Module, longest: int | None) -> Tensors:
    """Return what an exporter traces; each free axis has an extent of its own, so that it can be told."""
    if not token_rows.are_tokens(module.wanted):
        return timm_models.example(module, 2)
    return _rows(module, longest, (11, 16))


def probes(module: torch.nn.Module, longest: int | None) -> Iterator[tuple[str, Tensors]]:
    """Yield inputs of other shapes than the traced one, and masks of every kind, each with what is special about it."""
    if not token_rows.are_tokens(module.wanted):
        yield "one image", timm_models.example(module, 1)
        yield "three images", timm_models.example(module, 3)
        return
    yield "one row", _rows(module, longest, (7,))
    yield "right-padded", _rows(module, longest, (37, 5, 20))
    yield "left-padded", _rows(module, longest, (37, 5, 20), side="left")
    yield "with a hole in the mask", token_rows.punch_hole(_rows(module, longest, (23, 9)))


def _rows(
    module: torch.nn.Module, longest: int | None, lengths: tuple[int, ...], *, side: Literal["left", "right"] = "right"
) -> Tensors:
    """Return made-up rows of these lengths, or of what the model can take, as one batch."""
    import numpy as np

    vocabulary = torch_models.vocabulary(module)
    generator = np.random.default_rng(sum(lengths))
    limit = longest or max(lengths)
    rows = [token_rows.draw(generator, vocabulary, min(length, limit)) for length in lengths]
    return token_rows.batch(rows, pad=vocabulary.pad, side=side)
