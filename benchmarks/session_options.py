"""What ONNX Runtime's session options change in the latency of a built model: each option against the defaults."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from frontier.load import ALLOWED, Watch
from timing import add_text_shapes, machine, median_of_calls, table, text_shape

from engine.runtimes.onnxruntime import session_options

Change = Callable[[onnxruntime.SessionOptions, Mapping[str, int]], None]
"""A function that changes session options, given the size of each free axis."""
DEFAULTS = "as packaged"
PAUSE = 0.05
"""Seconds between two measurements, in which the threads of the last session stop spinning."""
SECONDS = 0.2
"""The time of one measurement; the median of its calls counts."""


def main() -> None:
    """Print how many times the defaults' latency each option takes. Exits with 1 if the machine was busy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="an artifact with model.onnx, for example of quantize")
    add_text_shapes(parser)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    header, cells = ["option"], {name: [name] for name in OPTIONS}
    with Watch() as load:
        for threads in options.threads:
            for shape in options.shapes:
                header.append(f"{shape}, {threads} thread{'s' if threads > 1 else ''}")
                for name, cell in compared(options.directory, shape, threads, options.rounds).items():
                    cells[name].append(cell)
    if load.others > ALLOWED:
        sys.exit(f"busy: other processes used {load.others:.2f} cores, at most {ALLOWED} are allowed")
    print(table(header, cells.values()))
    version = f"ONNX Runtime {onnxruntime.__version__}"
    how = f"medians of the ratios of {options.rounds} rounds in turns, with quartiles"
    print(f"\nTimes of the latency with the defaults: {how}. {version}; {machine()}.")


def compared(directory: Path, shape: str, threads: int, rounds: int) -> Mapping[str, str]:
    """Return the cell of each option for a shape: the ratio to the defaults, and the quartiles of the rounds."""
    batch, tokens = text_shape(shape)
    calls = {name: opened(directory, change, threads, batch, tokens) for name, change in OPTIONS.items()}
    took: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds):
        names = list(calls)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            time.sleep(PAUSE)
            took[name].append(median_of_calls(calls[name], SECONDS))
    return {name: cell([a / b for a, b in zip(took[name], took[DEFAULTS], strict=True)]) for name in calls}


def cell(ratios: Sequence[float]) -> str:
    """Return the median of ratios, and their quartiles."""
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def opened(directory: Path, change: Change, threads: int, batch: int, tokens: int) -> Callable[[], object]:
    """Return a call of the model with drawn tokens, in a session with one changed option."""
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = threads, 1
    saved = session_options.read(directory)
    level = session_options.LEVELS[saved.get("graph_optimization_level", "all")]
    settings.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    axes = onnx.load(directory / "model.onnx", load_external_data=False).graph.input[0].type.tensor_type.shape.dim
    change(settings, {axes[0].dim_param: batch, axes[1].dim_param: tokens})
    disabled = saved.get("disabled_optimizers", [])
    session = onnxruntime.InferenceSession(
        str(directory / "model.onnx"), settings, providers=["CPUExecutionProvider"], disabled_optimizers=disabled
    )
    random = np.random.default_rng(0)
    values = {
        each.name: np.ones((batch, tokens), np.int64)
        if "mask" in each.name
        else random.integers(0, 2 if "type" in each.name else 1000, (batch, tokens))
        for each in session.get_inputs()
    }
    return lambda: session.run(None, values)


def _entry(name: str, value: str) -> Change:
    return lambda settings, _: settings.add_session_config_entry(name, value)


def _field(**fields: object) -> Change:
    [(name, value)] = fields.items()
    return lambda settings, _: setattr(settings, name, value)


def _fixed(settings: onnxruntime.SessionOptions, sizes: Mapping[str, int]) -> None:
    for axis, size in sizes.items():
        settings.add_free_dimension_override_by_name(axis, size)


def _nothing(_: onnxruntime.SessionOptions, __: Mapping[str, int]) -> None:
    pass


OPTIONS: Mapping[str, Change] = {
    DEFAULTS: _nothing,
    "the same again": _nothing,
    "the shape is fixed": _fixed,
    "threads do not spin": _entry("session.intra_op.allow_spinning", "0"),
    "weights are not rearranged": _entry("session.disable_prepacking", "1"),
    "no arena": _field(enable_cpu_mem_arena=False),
    "no plan of memory": _field(enable_mem_pattern=False),
    "level extended": _field(graph_optimization_level=onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED),
    "level basic": _field(graph_optimization_level=onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC),
    "denormals are zero": _entry("session.set_denormal_as_zero", "1"),
}
"""Name of an option -> the function that sets it. "The same again" tells the noise of this measurement."""


if __name__ == "__main__":
    main()
