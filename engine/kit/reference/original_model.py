"""Original models: one interface to the model as it was published, run by PyTorch or by ONNX Runtime."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from engine import tasks
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.inputs import index_ranges, random_inputs, token_rows
from engine.kit.inputs.token_rows import Vocabulary
from engine.kit.onnx import onnx_files
from engine.kit.onnx.onnx_files import Input
from engine.kit.reference import torch_models
from engine.kit.reference.model_loading import HeadOptions
from engine.kit.reference.own_tokenizer import OwnTokenizer
from engine.runtimes.onnxruntime import session as ort
from engine.tasks import Generates

if TYPE_CHECKING:
    import numpy as np

    from engine.recipe.image_input import Images

_STORED_SIZES = 16
"""How many different sizes of weights are noted."""
_CONTINUED = 64
"""The largest number of tokens in a text that a decoder-only original model reads.

The limit keeps the outputs small, because a decoder gives a logit for each token of the vocabulary at each position of
the text.
"""


@dataclass(frozen=True)
class Original:
    """An original model in memory: its inputs, the limits of the inputs, and a function that runs the model."""

    name: str
    input_specs: Mapping[str, Input]
    """The name, type and shape of each input."""
    answer: Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]
    """Runs the model: inputs by name -> outputs by name."""
    ranges: Mapping[str, int]
    """The number of values that an integer input may have, by the input's name (`index_ranges.of`)."""
    vocabulary: Vocabulary | None = None
    """The number of token ids and token types that the model knows; None for a model that takes no tokens."""
    longest: int | None = None
    """The largest number of tokens that a sequence may have; None where no limit is known."""
    complete: Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]] = dict
    """A function that adds an input which only the model computes, the tokens for an encoder-decoder's decoder."""
    tokenizer: OwnTokenizer | None = None
    """The checkpoint's own tokenizer; None for a model without one, and for an ONNX file."""
    answer_user: Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]] | None = None
    """Runs the model as its users do, `model(**inputs)`, on what the checkpoint's own tokenizer gives."""
    stored_sizes: tuple[int, ...] = ()
    """The sizes of the first weights of an ONNX file; an axis of an input often has one of them."""


@contextlib.contextmanager
def load(
    checkpoint: Path, task: str, *, images: Images | None = None, **head: Unpack[HeadOptions]
) -> Iterator[Original]:
    """Load the original model so that its outputs are equal in every run on one machine.

    The model runs in fp32, on one thread and without graph optimizations. Raises StepError where the model cannot be
    loaded.
    """
    if checkpoints.kind(checkpoint) == "onnx":
        yield _onnx(checkpoint)
        return
    import torch

    module = torch_models.load(checkpoint, task, images=images, **head)
    tokens = token_rows.are_tokens(module.input_specs)
    longest = checkpoints.max_sequence(checkpoint)
    vocabulary = torch_models.vocabulary(module) if "input_ids" in module.input_specs else None
    if tasks.find(task).generates is Generates.CONTINUES:
        longest = min(longest or _CONTINUED, _CONTINUED)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield Original(
            name="pytorch-fp32",
            input_specs=module.input_specs,
            answer=lambda inputs: torch_models.call(module, inputs),
            ranges={} if vocabulary is None or tokens else {"input_ids": vocabulary.tokens},
            vocabulary=vocabulary if tokens else None,
            longest=longest,
            complete=lambda inputs: torch_models.complete(module, inputs),
            tokenizer=getattr(module, "tokenizer", None),
            answer_user=lambda inputs: torch_models.call_as_user(module, inputs),
        )
    finally:
        torch.set_num_threads(threads)


def _onnx(checkpoint: Path) -> Original:
    graph = onnx_files.load_graph(checkpoint)
    specs = onnx_files.inputs(graph)
    ranges = index_ranges.of(graph)
    session = ort.unoptimized(checkpoint)
    stored = dict.fromkeys(size for tensor in graph.graph.initializer for size in tensor.dims if size > 1)
    return Original(
        name="onnxruntime-fp32",
        input_specs=specs,
        answer=lambda inputs: ort.run(session, inputs),
        ranges=ranges,
        vocabulary=random_inputs.vocabulary(specs, ranges) if token_rows.are_tokens(specs) else None,
        stored_sizes=tuple(stored)[:_STORED_SIZES],
    )
