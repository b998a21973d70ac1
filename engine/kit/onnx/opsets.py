"""Opsets: which version of each operator domain a model imports, and a model converted to a newer version."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from engine.kit.onnx import mapped_weights, onnx_files
from engine.text import reasons

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

STANDARD = frozenset({"", "ai.onnx"})
"""The two names of the domain of ONNX's own operators."""
READ_AS_STANDARD = ("QuantizeLinear", "DequantizeLinear")
"""Operators of ONNX Runtime's domain that other runtimes read as ONNX's operators of the same name."""

_OF_ONNX_RUNTIME = ("SimplifiedLayerNormalization",)
"""Operators that ONNX Runtime's fusions put into ONNX's own domain, which does not define them."""
_APART = "unknown.to.onnx"
"""The domain in which these operators stand while a model is converted."""


_RELABELED_FROM = 20
"""The oldest opset whose models have the same meaning in opset 23, except for the operators in `_CHANGED`.

Source: the changelog of ONNX's operators; opsets 21 to 23 add operators and types to those that exist.
"""
_CHANGED = frozenset({"GroupNormalization"})
"""Operators with another meaning in one of the opsets 21 to 23: GroupNormalization has scales per channel since 21."""


class OpsetError(Exception):
    """The error that says why a model cannot be converted to an opset."""


def versions(model: onnx.ModelProto) -> dict[str, int]:
    """Return the imported version of every domain; ONNX's own domain is listed under both names, as 0 if missing."""
    return under_both_names({entry.domain: entry.version for entry in model.opset_import})


def under_both_names(imported: Mapping[str, int]) -> dict[str, int]:
    """Return imported versions by domain, with ONNX's own domain under both of its names, as 0 if missing."""
    standard = max((imported[domain] for domain in STANDARD if domain in imported), default=0)
    return {**imported, **dict.fromkeys(STANDARD, standard)}


def version(model: onnx.ModelProto) -> int:
    """Return the version of ONNX's own domain that a model imports; 0 where the model imports none."""
    return versions(model)[""]


def raised(model: onnx.ModelProto, oldest: int) -> onnx.ModelProto:
    """Return the model converted to opset `oldest`; a model in opset `oldest` or a newer one is returned unchanged.

    The IR version of `model` may be changed. Raises OpsetError where the model cannot be converted to the opset.
    """
    from onnx import helper, version_converter

    opset = version(model)
    if opset >= oldest:
        return model
    for tensor in onnx_files.tensors(model):
        mapped_weights.load(tensor)  # the converter would lose them
    model.ir_version = max(model.ir_version, onnx_files.WEIGHTS_NEED_NO_INPUT)
    try:
        with _set_apart(model):
            converted = version_converter.convert_version(model, oldest)
    except Exception as error:  # RuntimeError for an operator without an adapter, ValueError above 2 GiB
        reason = f"it is written in opset {opset}, and cannot be converted to {oldest}"
        raise OpsetError(f"{reason} ({reasons.first_line(error)})") from error
    _put_back(converted)
    oldest_ir = helper.find_min_ir_version_for([helper.make_opsetid("", oldest)])
    converted.ir_version = max(converted.ir_version, oldest_ir)
    return converted


def relabeled(model: ir.Model, opset: int) -> ir.Model:
    """Return a model in opset `opset`, at most 23, where its operators mean the same there; else the model itself.

    No operator is converted, so the weights of a large model stay mapped. The model is changed.
    """
    current = under_both_names(model.opset_imports)[""]
    operators = {node.op_type for graph in model.graphs() for node in graph}
    if _RELABELED_FROM <= current < opset and not model.functions and operators.isdisjoint(_CHANGED):
        from onnx import helper

        model.opset_imports[""] = opset
        model.ir_version = max(model.ir_version, helper.find_min_ir_version_for([helper.make_opsetid("", opset)]))
    return model


@contextlib.contextmanager
def _set_apart(model: onnx.ModelProto) -> Iterator[None]:
    """Move ONNX Runtime's operators in ONNX's own domain into a domain of their own, and back at the end.

    They are the same in every opset, and the converter, which would stop at them, copies nodes of other domains.
    """
    from onnx import helper

    nodes = [node for node in onnx_files.nodes(model) if node.domain in STANDARD and node.op_type in _OF_ONNX_RUNTIME]
    if nodes:
        model.opset_import.append(helper.make_opsetid(_APART, 1))
    for node in nodes:
        node.domain = _APART
    try:
        yield
    finally:
        _put_back(model)


def _put_back(model: onnx.ModelProto) -> None:
    for node in onnx_files.nodes(model):
        if node.domain == _APART:
            node.domain = ""
    entries = [entry for entry in model.opset_import if entry.domain != _APART]
    del model.opset_import[:]
    model.opset_import.extend(entries)
