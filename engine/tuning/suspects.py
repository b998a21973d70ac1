"""Suspects: the layers of a model that a lower precision may spoil, by the names of `keep_in`, the likeliest first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine.builder import facts
from engine.errors import UsageError
from engine.kit.accuracy import layers
from engine.kit.accuracy.layers import ComparedLayer
from engine.kit.inputs import cases
from engine.kit.onnx import graphs, onnx_files
from engine.kit.quantization import keep_in
from engine.runtimes.execution import Execution

if TYPE_CHECKING:
    import onnx

    from engine.builder.summary import Summary
    from engine.store.store import Store

_ORIGINAL, _CASES = "shaped", "reference"
"""The outputs of steps with the original graph, whose names a recipe has, and with the cases of the validation."""
_BUILT = ("checked", "quantized", "fused", "shaped")
"""The outputs of steps that may be the built graph, the last step first.

A GPU gets the graph that `validate-onnx` has checked; a CPU gets what the last step before `validate` made.
"""
_PRODUCTS = frozenset({"Attention", "Conv", "ConvTranspose", "Einsum", "GRU", "Gemm", "LSTM", "MatMul", "RNN"})
_WITHOUT_NUMBERS = frozenset({"Constant", "ConstantOfShape", "Shape"})


def layers_of(model: Path, kept: Iterable[str] = (), *, multiplying: bool) -> dict[str, set[str]]:
    """Return the tensors that each layer of a model computes, by the layer's name, in the order of the graphs.

    The name is that of a module with no other module in it, else that of a node. With `multiplying` the layers are
    those that multiply or have stored matrices: only these can be in low bits. Layers that `kept` names are left out.
    """
    layers: dict[str, set[str]] = {}
    for folder in graphs.folders(model):
        graph = onnx_files.load_graph(model / folder).graph
        stored = {name for name, tensor in onnx_files.initializers(graph).items() if len(tensor.dims) > 1}
        named = [(node, list(keep_in.names_of(node))) for node in graph.node]
        inside: dict[str, set[str]] = {}
        for _, (innermost, *around) in named:
            for module in (innermost, *around):
                inside.setdefault(module, set()).add(innermost)
        for node, names in named:
            is_product = node.op_type in _PRODUCTS or not stored.isdisjoint(node.input)
            is_kept = any(keep_in.matches(each, names) for each in kept)
            if not is_kept and (is_product or not (multiplying or node.op_type in _WITHOUT_NUMBERS)):
                name = names[0] if len(inside[names[0]]) == 1 else names[-1]
                layers.setdefault(name, set()).update(node.output)
    return layers


def by_suspicion(
    layers: Mapping[str, Collection[str]], graph: onnx.GraphProto, compared: Iterable[ComparedLayer]
) -> list[str]:
    """Return the names of layers in the order of what their tensors lose; the same loss keeps the graph's order.

    What a tensor loses that only one of both models has, such as one inside a fused operator, shows in the next one.
    """
    lost = {layer.tensor: layer.lost for layer in compared}
    suspicion: dict[str, float] = {}
    shown = 0.0
    for node in reversed(graph.node):
        shown = max((lost[name] for name in node.output if name in lost), default=shown)
        suspicion.update(dict.fromkeys(node.output, shown))
    return sorted(layers, key=lambda name: -max(suspicion[tensor] for tensor in layers[name]))


def original(summary: Summary, store: Store) -> Path:
    """Return the folder of the original graph, whose names a recipe has."""
    return _folders(summary, store)[_ORIGINAL]


def compare(summary: Summary, store: Store, count: int) -> tuple[str, list[ComparedLayer]]:
    """Return where the built model ran, and its tensors, compared with the original's in `count` cases.

    Raises UsageError where Polygraphy is missing or cannot compare the model, or the build did not come so far.
    """
    layers.refuse_missing()
    variant, folders = summary.variant, _folders(summary, store)
    planned = {job.step.makes for job in variant.jobs if job.name not in summary.rejected}
    needed = {"original": _ORIGINAL, "built": next(name for name in _BUILT if name in planned), "cases": _CASES}
    if missing := [word for word, name in needed.items() if name not in folders]:
        hint = "build it first: `recipe build`; a build that failed in `validate` is enough"
        raise UsageError(f"{variant.name} is not built so far: {' and '.join(missing)} missing", hint=hint)
    before, after, reference = (folders[name] for name in needed.values())
    inputs = [case.inputs for case in cases.load(reference)[:count]]
    execution = Execution.for_recipe(variant.loaded.recipe)
    if not execution.by.compares_layers:
        raise UsageError(f"no layers are compared with {execution.by.name}")
    hardware = execution.needs
    if hardware is None or not facts.can_run(hardware):
        why = "" if hardware is None else f", as this machine has no {hardware}"
        return f"in ONNX Runtime on the CPU{why}", layers.compare(before, after, inputs)
    device = execution.by.beside("layers").on_device(execution)
    return f"in {execution.by.title} on {hardware}", layers.compare(before, after, inputs, device)


def _folders(summary: Summary, store: Store) -> dict[str, Path]:
    """Return the artifacts of a build by the names of outputs, without those that a judgement has rejected."""
    jobs = [job for job in summary.variant.jobs if job.name in summary.records and job.name not in summary.rejected]
    return {job.step.makes: store.artifact_path(summary.records[job.name].artifact) for job in jobs}
