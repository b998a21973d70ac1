"""Graphs: the folders of an artifact that hold an ONNX model each, and the names of the past of one that generates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from engine.kit.onnx import onnx_files

if TYPE_CHECKING:
    import onnx

R = TypeVar("R")

WHOLE, ENCODER, DECODER = ".", "encoder", "decoder"
PAST, PRESENT = "past_key_values", "present"
"""The first words in the names of inputs (PAST) and of outputs (PRESENT) that carry attention keys and values.

The output `present.0.key` of one call becomes the input `past_key_values.0.key` of the next call.
"""
OWN, CROSS = "decoder", "encoder"
"""The words in the names of a decoder's tensors that tell whose attention keys and values a tensor holds.

OWN marks the attention keys and values of the decoder's own tokens, CROSS those of the encoder's tokens.
"""


def folders(artifact: Path) -> tuple[str, ...]:
    """Return the folders of an artifact that hold a model: `.` for a single model, or `encoder` and `decoder`."""
    apart = tuple(name for name in (ENCODER, DECODER) if (artifact / name / onnx_files.MODEL).is_file())
    return apart or (WHOLE,)


def has_past(model: onnx.ModelProto) -> bool:
    """Whether a model has inputs for the attention keys and values of earlier calls."""
    return any(carries_past(value.name) for value in model.graph.input)


def generates(artifact: Path) -> bool:
    """Whether an artifact is a model that generates text: its graph, or the graph of its decoder, has a past.

    An artifact without an ONNX graph, such as a TensorRT engine, counts as a model that generates no text.
    """
    folder = artifact / folders(artifact)[-1]
    return (folder / onnx_files.MODEL).is_file() and has_past(onnx_files.load_graph(folder))


def each(
    convert: Callable[[Path, Path], R], artifact: Path, out: Path, *, together: Callable[[Mapping[str, R]], R]
) -> R:
    """Call `convert` with the folder of each graph of an artifact and with the folder for the result of that graph.

    A single graph has its result in `out` itself; each of several graphs has its result in a folder of `out`. For a
    single graph the function returns the graph's report; for several graphs it returns `together(reports)`, where
    `reports` maps folders to reports.
    """
    names = folders(artifact)
    if names == (WHOLE,):
        return convert(artifact, out)
    out.mkdir(parents=True, exist_ok=True)
    reports = {}
    for name in names:
        print(f"the {name}:")
        reports[name] = convert(artifact / name, out / name)
    return together(reports)


def carries_past(name: str | None) -> bool:
    """Whether an input of this name takes attention keys or values of earlier calls."""
    return (name or "").startswith(f"{PAST}.")


def past_names(prefix: str, layers: int, part: str | None = None) -> tuple[str, ...]:
    """Return names of attention keys and values, such as `present.0.key` or, with a part, `present.0.encoder.key`."""
    inner = "" if part is None else f"{part}."
    return tuple(f"{prefix}.{layer}.{inner}{kind}" for layer in range(layers) for kind in ("key", "value"))


def becoming_past(present: str) -> str:
    """Return the name of the input, such as `past_key_values.0.key`, that takes the last call's output `present`."""
    return PAST + present.removeprefix(PRESENT)
