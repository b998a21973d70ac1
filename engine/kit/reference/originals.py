"""The original model as one thing to ask, whether PyTorch or ONNX Runtime runs it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine import tasks
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.inputs import index_ranges, random_inputs, token_rows
from engine.kit.inputs.token_rows import Vocabulary
from engine.kit.onnx import onnx_files
from engine.kit.onnx.onnx_files import Input
from engine.kit.reference import torch_models
from engine.runtimes.onnxruntime import session as ort
from engine.tasks import Generates

if TYPE_CHECKING:
    import numpy as np

    from engine.recipe.images import Images

_CONTINUED = 64
"""Tokens of a text that a model continues: of each of them the answer is a number for every word that it knows."""


@dataclass(frozen=True)
class Original:
    """What the model takes, how many different values its integer inputs may have, and its answer to inputs.

    `vocabulary` is None for a model that takes no tokens; `longest` None where no limit of its sequences is known.
    """

    name: str
    wanted: Mapping[str, Input]
    answer: Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]
    ranges: Mapping[str, int]
    vocabulary: Vocabulary | None = None
    longest: int | None = None
    complete: Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]] = dict
    """Adds to the inputs of a case what only the model itself can say: the tokens of its own decoder."""


@contextlib.contextmanager
def load(
    checkpoint: Path,
    task: str,
    *,
    num_labels: int | None = None,
    random_head: bool = False,
    images: Images | None = None,
) -> Iterator[Original]:
    """Open the model for answers that are the same in every run on one machine: fp32, one thread, nothing optimized.

    Raises StepError where it cannot be loaded.
    """
    if checkpoints.kind(checkpoint) == "onnx":
        yield _onnx(checkpoint)
        return
    import torch

    module = torch_models.load(checkpoint, task, num_labels=num_labels, random_head=random_head, images=images)
    tokens = token_rows.are_tokens(module.wanted)
    longest = checkpoints.max_sequence(checkpoint)
    if tasks.find(task).generates is Generates.CONTINUES:
        longest = min(longest or _CONTINUED, _CONTINUED)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield Original(
            name="pytorch-fp32",
            wanted=module.wanted,
            answer=lambda inputs: torch_models.call(module, inputs),
            ranges={},
            vocabulary=torch_models.vocabulary(module) if tokens else None,
            longest=longest,
            complete=lambda inputs: torch_models.complete(module, inputs),
        )
    finally:
        torch.set_num_threads(threads)


def _onnx(checkpoint: Path) -> Original:
    graph = onnx_files.load_graph(checkpoint)
    wanted = onnx_files.inputs(graph)
    ranges = index_ranges.of(graph)
    session = ort.unoptimized(checkpoint)
    return Original(
        name="onnxruntime-fp32",
        wanted=wanted,
        answer=lambda inputs: ort.run(session, inputs),
        ranges=ranges,
        vocabulary=random_inputs.vocabulary(wanted, ranges) if token_rows.are_tokens(wanted) else None,
    )
