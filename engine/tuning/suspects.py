"""Suspects: the layers of a model that a lower precision may spoil, by the names of `keep_in`, the likeliest first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.builder import facts
from engine.errors import UsageError
from engine.kit.accuracy import layers
from engine.kit.accuracy.layers import ComparedLayer
from engine.kit.inputs import cases
from engine.kit.onnx import onnx_files
from engine.kit.quantization import keep_in

if TYPE_CHECKING:
    import onnx

    from engine.builder.job import Job

ORIGINAL, CASES = "shaped", "reference"
"""The outputs of steps with the original graph, whose names a recipe has, and with the cases of the validation."""
_BUILT = ("checked", "quantized", "fused", "shaped")
"""The outputs of steps that may be the built graph, the last step first.

A GPU gets the graph that `validate-onnx` has checked; a CPU gets what the last step before `validate` made.
"""
_PRODUCTS = frozenset({"Attention", "Conv", "ConvTranspose", "Einsum", "GRU", "Gemm", "LSTM", "MatMul", "RNN"})
_WITHOUT_NUMBERS = frozenset({"Constant", "ConstantOfShape", "Shape"})


@dataclass(frozen=True)
class SuspectLayer:
    """A layer of the original graph: the name that `keep_in` takes, and its operators.

    The name is that of a module with no other module in it, else that of a node.
    """

    name: str
    operators: tuple[str, ...]
    tensors: frozenset[str]
    """What its nodes compute."""


def layers_of(graph: onnx.GraphProto, *, multiplying: bool) -> list[SuspectLayer]:
    """Return the layers of a graph in its order; with `multiplying` those that multiply or have stored matrices."""
    named = [(node, list(keep_in.names_of(node))) for node in graph.node]
    inside: dict[str, set[str]] = {}
    for _, (innermost, *around) in named:
        for module in (innermost, *around):
            inside.setdefault(module, set()).add(innermost)
    stored = {name for name, tensor in onnx_files.initializers(graph).items() if len(tensor.dims) > 1}
    nodes: dict[str, list[onnx.NodeProto]] = {}
    for node, names in named:
        if (node.op_type in _PRODUCTS or stored.intersection(node.input)) or not (
            multiplying or node.op_type in _WITHOUT_NUMBERS
        ):
            name = names[0] if len(inside[names[0]]) == 1 else names[-1]
            nodes.setdefault(name, []).append(node)
    return [
        SuspectLayer(
            name,
            operators=tuple(dict.fromkeys(node.op_type for node in every)),
            tensors=frozenset(output for node in every for output in node.output),
        )
        for name, every in nodes.items()
    ]


def by_suspicion(
    candidates: Iterable[SuspectLayer], graph: onnx.GraphProto, compared: Sequence[ComparedLayer]
) -> list[SuspectLayer]:
    """Return layers in the order of what the compared tensors lose; those that lose the same in the graph's order.

    What a tensor loses that only one of both models has, such as one inside a fused operator, shows in the next one.
    """
    lost = {layer.tensor: layer.lost for layer in compared}
    suspicion: dict[str, float] = {}
    shown = 0.0
    for node in reversed(graph.node):
        shown = max((lost[name] for name in node.output if name in lost), default=shown)
        suspicion.update(dict.fromkeys(node.output, shown))
    return sorted(candidates, key=lambda layer: -max(suspicion[name] for name in layer.tensors))


def compare(jobs: Sequence[Job], folders: Mapping[str, Path], count: int) -> tuple[str, list[ComparedLayer]]:
    """Return where the built model ran, and its tensors, compared with the original's in `count` cases.

    `folders` are artifacts by the names of outputs. Raises UsageError where Polygraphy is missing, or cannot compare.
    """
    layers.refuse_missing()
    built = next(folders[name] for name in _BUILT if name in folders)
    inputs = [case.inputs for case in cases.load(folders[CASES])[:count]]
    execution = next(
        (job.step.execution for job in jobs if job.step.makes == "validated" and hasattr(job.step, "execution")), None
    )
    if execution is not None and not execution.by.compares_layers:
        raise UsageError(f"no layers are compared with {execution.by.name}")
    hardware = None if execution is None else execution.needs
    if execution is None or hardware is None:
        return "in ONNX Runtime on the CPU", layers.compare(folders[ORIGINAL], built, inputs)
    if not facts.can_run(hardware):
        place = f"in ONNX Runtime on the CPU, as this machine has no {hardware}"
        return place, layers.compare(folders[ORIGINAL], built, inputs)
    device = execution.by.beside("layers").on_device(execution)
    return f"in {execution.by.title} on {hardware}", layers.compare(folders[ORIGINAL], built, inputs, device)


def missing(folders: Mapping[str, Path]) -> list[str]:
    """Return which of the artifacts that are compared are not in `folders`, in the words of an error."""
    needed = {"original": (ORIGINAL,), "built": _BUILT, "cases": (CASES,)}
    return [word for word, names in needed.items() if not any(name in folders for name in names)]
