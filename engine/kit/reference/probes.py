"""Probes: synthetic inputs for tracing a model, and for comparing the exported graph with the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from engine.kit.generation import modules
from engine.kit.inputs import synthetic, token_rows
from engine.kit.reference import timm_models, torch_models, vision_models

if TYPE_CHECKING:
    import numpy as np
    import torch

    Tensors = dict[str, np.ndarray]

_TRACED = {"batch": 2, "sequence": 3, "past_sequence": 5, "total_sequence": 8, "encoder_sequence": 7}
"""The extents of the axes in the inputs that trace a model with a past.

All extents differ, so that an exporter cannot mix up axes.
"""
_ANSWER = 6
"""The number of tokens that the decoder of an encoder-decoder model reads in a probe."""
_OTHER_SIZE, _ODD_SIZE = (64, 160), (101, 75)
"""Heights and widths of images that differ from those that trace a model; no patches divide the second."""


def example(module: torch.nn.Module, longest: int | None) -> Tensors:
    """Return the inputs for tracing a model: two images, or two rows of tokens."""
    if not token_rows.are_tokens(module.input_specs):
        return _images(module, 2)
    return _rows(module, longest, (11, 16))


def example_of_other_sizes(module: torch.nn.Module) -> Tensors:
    """Return inputs of an image model in which every free axis has another extent than in those of `example`."""
    return vision_models.example(module, 3, _OTHER_SIZE, texts=5, tokens=7)


def example_with_past(part: torch.nn.Module, tokens: int) -> Tensors:
    """Return inputs by name, to trace a module that `modules.with_past` returned; all token ids are below `tokens`."""
    import numpy as np

    generator = np.random.default_rng(0)
    tensors: Tensors = {}
    shapes = synthetic.shapes(part.input_specs, _TRACED, first=_TRACED["batch"], other=_TRACED["sequence"])
    for name, shape in shapes.items():
        if part.input_specs[name].dtype == "float32":
            tensors[name] = generator.standard_normal(shape, np.float32)
        elif name == "position_ids":
            tensors[name] = np.arange(shape[1])[None].repeat(shape[0], axis=0) + _TRACED["past_sequence"]
        elif name == "input_ids":
            tensors[name] = synthetic.tensor(generator, "int64", shape, below=tokens)
        else:
            tensors[name] = np.ones(shape, np.int64)
    return tensors


def probes(module: torch.nn.Module, longest: int | None) -> Iterator[tuple[str, Tensors]]:
    """Yield pairs of a name, for errors, and inputs.

    The inputs have masks of every kind, and shapes that differ from the shapes of the inputs that `example` returns.
    """
    if not token_rows.are_tokens(module.input_specs):
        yield "one image", _images(module, 1)
        if timm_models.is_one(module):
            yield "three images", timm_models.example(module, 3)
            return
        yield "three images, of another size where sizes are free", example_of_other_sizes(module)
        yield "two images, of an odd size where sizes are free", vision_models.example(module, 2, _ODD_SIZE)
        return
    yield "one row", _answered(module, _rows(module, longest, (7,)))
    yield "right-padded", _answered(module, _rows(module, longest, (37, 5, 20)))
    yield "left-padded", _answered(module, _rows(module, longest, (37, 5, 20), side="left"))
    yield "with a hole in the mask", _answered(module, token_rows.punch_hole(_rows(module, longest, (23, 9))))


def _images(module: torch.nn.Module, batch: int) -> Tensors:
    return vision_models.example(module, batch) if vision_models.is_one(module) else timm_models.example(module, batch)


def _answered(module: torch.nn.Module, rows: Tensors) -> Tensors:
    """Return the rows, with random decoder tokens added for a module with an encoder and a decoder."""
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
    """Return a batch of random rows with the given lengths, cut to `longest`; the sum of `lengths` is the seed."""
    vocabulary = torch_models.vocabulary(module)
    fixed = module.input_specs["input_ids"].shape[1]
    limit, least = (fixed, fixed) if isinstance(fixed, int) else (longest or max(lengths), 1)
    rows = synthetic.rows(sum(lengths), vocabulary, [max(least, min(length, limit)) for length in lengths])
    return token_rows.batch(rows, pad=vocabulary.pad, side=side)
