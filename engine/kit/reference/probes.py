"""Probes: made-up inputs with which a model is traced, and on which its graph is compared with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from engine.kit.generation import modules
from engine.kit.inputs import synthetic, token_rows
from engine.kit.reference import timm_models, torch_models

if TYPE_CHECKING:
    import numpy as np
    import torch

    Tensors = dict[str, np.ndarray]

_TRACED = {"batch": 2, "sequence": 3, "past_sequence": 5, "total_sequence": 8, "encoder_sequence": 7}
"""The extents of the axes when a model with a past is traced: each its own, so that it can be told."""
_ANSWER = 6
"""Tokens of a decoder behind an encoder."""


def example(module: torch.nn.Module, longest: int | None) -> Tensors:
    """Return what an exporter traces; each free axis has an extent of its own, so that it can be told."""
    if not token_rows.are_tokens(module.wanted):
        return timm_models.example(module, 2)
    return _rows(module, longest, (11, 16))


def example_with_past(part: torch.nn.Module, tokens: int) -> Tensors:
    """Return what an exporter traces of a module of `modules.with_past`, whose ids are below `tokens`."""
    import numpy as np

    generator = np.random.default_rng(0)
    drawn: Tensors = {}
    for name, value in part.wanted.items():
        shape = synthetic.shape(value, _TRACED, first=_TRACED["batch"], other=_TRACED["sequence"])
        if value.dtype == "float32":
            drawn[name] = synthetic.float32_tensor(generator, shape)
        elif name == "position_ids":
            drawn[name] = np.arange(shape[1])[None].repeat(shape[0], axis=0) + _TRACED["past_sequence"]
        elif name == "input_ids":
            drawn[name] = synthetic.tensor(generator, "int64", shape, below=tokens)
        else:
            drawn[name] = np.ones(shape, np.int64)
    return drawn


def probes(module: torch.nn.Module, longest: int | None) -> Iterator[tuple[str, Tensors]]:
    """Yield inputs of other shapes than the traced one, and masks of every kind, each with what is special about it."""
    if not token_rows.are_tokens(module.wanted):
        yield "one image", timm_models.example(module, 1)
        yield "three images", timm_models.example(module, 3)
        return
    yield "one row", _answered(module, _rows(module, longest, (7,)))
    yield "right-padded", _answered(module, _rows(module, longest, (37, 5, 20)))
    yield "left-padded", _answered(module, _rows(module, longest, (37, 5, 20), side="left"))
    yield "with a hole in the mask", _answered(module, token_rows.punch_hole(_rows(module, longest, (23, 9))))


def _answered(module: torch.nn.Module, rows: Tensors) -> Tensors:
    """Return the rows, with made-up tokens of a decoder where the module asks for them."""
    import numpy as np

    if modules.DECODER_TOKENS not in module.input_names:
        return rows
    ids = rows["input_ids"]
    generator = np.random.default_rng(ids.size)
    tokens = torch_models.vocabulary(module).tokens
    answer = synthetic.tensor(generator, "int64", (len(ids), _ANSWER), below=tokens)
    return {**rows, modules.DECODER_TOKENS: answer}


def _rows(
    module: torch.nn.Module, longest: int | None, lengths: tuple[int, ...], *, side: Literal["left", "right"] = "right"
) -> Tensors:
    """Return made-up rows of these lengths, or of what the model can take, as one batch."""
    vocabulary = torch_models.vocabulary(module)
    limit = longest or max(lengths)
    rows = synthetic.rows(sum(lengths), vocabulary, [min(length, limit) for length in lengths])
    return token_rows.batch(rows, pad=vocabulary.pad, side=side)
