"""Opsets: which version of each operator domain a model imports, and a model converted to a newer version."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from engine.kit.onnx import mapped_weights, onnx_files
from engine.text import reasons

if TYPE_CHECKING:
    import onnx

STANDARD = frozenset({"", "ai.onnx"})
"""The two names of the domain of ONNX's own operators."""
READ_AS_STANDARD = ("QuantizeLinear", "DequantizeLinear")
"""Operators of ONNX Runtime's domain that other runtimes read as ONNX's operators of the same name."""
WEIGHTS_NEED_NO_INPUT = 4
"""The first IR version in which a graph may store an initializer without listing the initializer as an input."""

_OF_ONNX_RUNTIME = ("SimplifiedLayerNormalization",)
"""Operators that ONNX Runtime's fusions put into ONNX's own domain, which does not define them."""
_APART = "unknown.to.onnx"
"""The domain in which these operators stand while a model is converted."""


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
    model.ir_version = max(model.ir_version, WEIGHTS_NEED_NO_INPUT)
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
