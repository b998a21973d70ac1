"""Built: the accuracy of a built model in its runtime, as the step `validate` reports it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from engine import tasks
from engine.kit.accuracy import few_samples, perplexity, usual_work
from engine.kit.accuracy import measure as accuracy
from engine.kit.accuracy.report import AccuracyReport
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.onnx import graphs, onnx_files
from engine.runtimes.execution import Execution


def measure(
    directory: Path,
    execution: Execution,
    *,
    reference: Path,
    checkpoint: Path,
    task: str | None,
    opt: Mapping[str, int],
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
        runner.run, reference, checkpoint, task, what=what, takes=runner.takes, by_lengths=by_lengths
    )
    work = None
    if runner.work is not None:
        model = runner.inputs or onnx_files.load_graph(directory / graphs.folders(directory)[0])
        longest = None if new_tokens is None else checkpoints.max_sequence(checkpoint)
        work = usual_work.shares(runner.work, model, opt, reference, generates=new_tokens is not None, longest=longest)
    measured = perplexity.of_built(runner.run, reference)
    notes = (*report.notes, *few_samples.note(report.kinds, work))
    return replace(report, perplexity=measured, work=work, notes=notes, bytes=onnx_files.folder_size(directory))
