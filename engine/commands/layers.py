"""Compare the layers of a built model with the original's, to find the layer that loses accuracy."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from engine.commands import options
from engine.commands.amounts import positive
from engine.errors import Exit, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from engine.builder.summary import Summary
    from engine.kit.accuracy.layers import ComparedLayer

_SHOWN = 12
"""The number of layers that are printed, those that lose most."""
_CASES = "reference"
"""The name of the output with the cases."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe layers`."""
    options.add_recipes(parser, many=False)
    parser.add_argument(
        "--cases", metavar="N", type=positive, default=3, help="compare N cases of the validation (default: 3)"
    )
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> Exit:
    """Print the layers that lose most. Raises UsageError without Polygraphy, and for a recipe that is not built."""
    from engine import api
    from engine.builder.summary import summarize
    from engine.kit.accuracy import layers

    session = api.session(arguments.recipes, **options.reading(arguments))
    layers.refuse_missing()
    store = session.lookup.store
    results = []
    for variant in session.variants:
        summary = summarize(session.lookup, variant, newest=True)  # also of a build that failed in `validate`
        folders = {name: store.artifact_path(artifact) for name, artifact in _artifacts(summary).items()}
        results.append((summary.variant.name, *_compared(summary, folders, arguments.cases)))
    store.leave()
    if arguments.json:
        fields = [
            {"recipe": name, "on": place, "layers": [asdict(layer) for layer in every]}
            for name, place, every in results
        ]
        print(json.dumps(fields, indent=1))
        return Exit.OK
    for name, place, every in results:
        print(f"{name}: {len(every)} tensors of the built model, {place}, against the original on the CPU")
        _print(every)
    return Exit.OK


def _artifacts(summary: Summary) -> dict[str, str]:
    """Return the artifacts that are compared: the original graph, the built graph and the cases."""
    jobs = [job for job in summary.variant.jobs if job.name not in summary.rejected]
    by_output = {job.step.makes: summary.records.get(job.name) for job in jobs}
    # A GPU gets the graph that `validate-onnx` has checked; a CPU gets what the last step before `validate` made.
    built = next((by_output[name] for name in ("checked", "quantized", "fused", "shaped") if name in by_output), None)
    records = {"original": by_output.get("shaped"), "built": built, "cases": by_output.get(_CASES)}
    missing = [name for name, record in records.items() if record is None]
    if missing:
        hint = "build it first: `recipe build`; a build that failed in `validate` is enough"
        raise UsageError(f"{summary.variant.name} is not built so far: {' and '.join(missing)} missing", hint=hint)
    return {name: record.artifact for name, record in records.items() if record is not None}


def _compared(summary: Summary, folders: dict[str, Path], count: int) -> tuple[str, list[ComparedLayer]]:
    """Return where the built model ran, and its layers."""
    from engine.builder import facts
    from engine.kit.accuracy import layers
    from engine.kit.inputs import cases

    inputs = [case.inputs for case in cases.load(folders["cases"])[:count]]
    steps = [job.step for job in summary.variant.jobs]
    validating = [step.execution for step in steps if step.makes == "validated" and hasattr(step, "execution")]
    execution = validating[0] if validating else None
    hardware = None if execution is None else execution.needs
    if execution is None or hardware is None:
        return "in ONNX Runtime on the CPU", layers.compare(folders["original"], folders["built"], inputs)
    if not execution.by.compares_layers:
        raise UsageError(f"no layers are compared with {execution.by.name}")
    if not facts.can_run(hardware):
        place = f"in ONNX Runtime on the CPU, as this machine has no {hardware}"
        return place, layers.compare(folders["original"], folders["built"], inputs)
    device = execution.by.beside("layers").on_device(execution)
    place = f"in {execution.by.title} on {hardware}"
    return place, layers.compare(folders["original"], folders["built"], inputs, device)


def _print(every: Sequence[ComparedLayer]) -> None:
    from engine.report import grid

    most = sorted(every, key=lambda layer: -layer.lost)[:_SHOWN]
    rows = [("lost here", "cosine", "max_abs", "type", "operator", "tensor")]
    rows += [
        (f"{layer.lost:.2g}", f"{layer.cosine:.6f}", f"{layer.max_abs:.2g}", layer.dtype, layer.operator, layer.tensor)
        for layer in most
    ]
    grid.show(rows, [grid.RIGHT] * 3, indent=2)
