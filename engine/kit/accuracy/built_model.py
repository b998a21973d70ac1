"""Built model: its accuracy in its runtime, and the shares of its multiplications in each precision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from engine import tasks
from engine.errors import StepError
from engine.kit.accuracy import measure as accuracy
from engine.kit.accuracy import perplexity
from engine.kit.accuracy.report import AccuracyReport, PrecisionShares
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.inputs import bench_inputs, cases
from engine.kit.onnx import graphs, onnx_files
from engine.runtimes import axes
from engine.runtimes.execution import Execution

if TYPE_CHECKING:
    import numpy as np
    import onnx

    from engine.kit.onnx.onnx_files import Input

    Count = Callable[[Mapping[str, np.ndarray]], Mapping[str, int]]

_OWN = ("sample", "tensors")
"""The kinds of cases that come from a recipe's own samples."""
_DOUBT = 0.05
"""One minus the confidence, and the share of inputs from which a report has a note."""
_EXACT = frozenset({"fp32", "fp64"})


def measure(
    directory: Path,
    execution: Execution,
    *,
    reference: Path,
    checkpoint: Path,
    task: str | None,
    opt: Mapping[str, int],
    boxes_along: Mapping[str, int] = MappingProxyType({}),
    what: str = "the built model",
) -> AccuracyReport:
    """Return the report of `accuracy.measure` of the model in `directory`, with its size in bytes and its work.

    `opt` is the extent of each axis for which multiplications are counted. Raises StepError where the model cannot run,
    takes none of the cases or has outputs of another shape than the original.
    """
    # On one thread, sums have the same order on every machine.
    new_tokens = 1 if tasks.generates(checkpoints.task(checkpoint, task)) else None
    runner = execution.by.runner(directory, execution, name="built", threads=1, new_tokens=new_tokens)
    by_lengths = execution.by.takes_lengths
    report = accuracy.measure(
        runner.run,
        reference,
        checkpoint,
        task,
        what=what,
        takes=runner.takes,
        by_lengths=by_lengths,
        boxes_along=boxes_along,
    )
    work = None
    if runner.work is not None:
        model = runner.inputs or onnx_files.load_graph(directory / graphs.folders(directory)[0])
        longest = None if new_tokens is None else checkpoints.max_sequence(checkpoint)
        work = precision_shares(runner.work, model, opt, reference, generates=new_tokens is not None, longest=longest)
    measured = perplexity.of_built(runner.run, reference)
    notes = (*report.notes, *_note_on_few_samples(report.kinds, work))
    return replace(report, perplexity=measured, work=work, notes=notes, bytes=onnx_files.folder_size(directory))


def _note_on_few_samples(kinds: Mapping[str, int], work: PrecisionShares | None) -> tuple[str, ...]:
    """Return a note where so few samples say little about the rounding of a model on other inputs; else nothing.

    If a share p of the inputs missed a bound, n independent samples would all keep it with a probability of (1 - p)^n.
    So n samples that keep a bound rule out, with 95 % confidence, only shares above 1 - 0.05^(1/n). `kinds` is the
    number of cases by kind. A model that computes in fp32 alone has no note, as its rounding depends little on inputs.
    """
    count = sum(kinds.get(kind, 0) for kind in _OWN)
    if not count or work is None or set(work.shares) <= _EXACT:
        return ()
    share = 1 - _DOUBT ** (1 / count)
    if share < _DOUBT:
        return ()
    return (f"{count} samples that keep a bound: up to {share:.0%} of other inputs may miss it (95 % confidence)",)


def precision_shares(
    count: Count,
    model: onnx.ModelProto | Mapping[str, Input],
    opt: Mapping[str, int],
    reference: Path,
    *,
    generates: bool = False,
    longest: int | None = None,
) -> PrecisionShares:
    """Return the shares of the multiplications that `count` counts in one run, on inputs of the extents `opt`.

    `model` is an ONNX graph, or the inputs of a model whose multiplications depend on shapes alone. `opt` maps an axis
    to its extent; axes without an entry have usual extents. A model that refuses random inputs, such as a speech model
    that takes a sample rate, runs on the first case of the reference. Raises StepError where the model cannot run on
    the first case either.

    A model that `generates` text runs on a prompt of at most `longest` tokens.
    """
    if isinstance(model, Mapping):
        extents = bench_inputs.usual_extents(model, opt)
        return PrecisionShares.of(count(_zeros(model, extents)), extents)
    if generates:
        draw, extents = bench_inputs.prompts, bench_inputs.usual_prompt(opt, longest)
    else:
        draw, extents = bench_inputs.draw, bench_inputs.usual_extents(onnx_files.inputs(model), opt)
    try:
        return PrecisionShares.of(count(draw(model, extents)), extents)
    except StepError as error:
        print(f"random inputs fail ({error.what}), so the multiplications are counted on a case of the reference")
    return PrecisionShares.of(count(cases.load(reference)[0].inputs), {})


def _zeros(inputs: Mapping[str, Input], extents: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Return inputs of zeros; an axis whose extent follows from no other has one entry."""
    import numpy as np

    return {
        name: np.zeros([axes.extent(axis, extents) or 1 for axis in value.shape], value.dtype)
        for name, value in inputs.items()
    }
