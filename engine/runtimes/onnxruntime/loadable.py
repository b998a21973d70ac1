"""Loadable: whether ONNX Runtime can load an ONNX file, by its header, operators and types, then by a try."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.onnx import external_data, mapped_weights, onnx_files, onnx_source, opsets, widening
from engine.runtimes.onnxruntime import session as ort
from engine.text import lists

if TYPE_CHECKING:
    import onnx

_TRIED_BYTES = 64 << 20
"""The largest size of a model, with its external data, that is opened; of a larger model only the header is read."""
_SAFE_IR, _SAFE_OPSET = 8, 17
"""An IR version and an opset that every supported version of ONNX Runtime reads."""
_COMPLETE_OPSET = 13
"""ONNX Runtime has code for the operators of this opset and of newer ones, and not for all of older ones."""


def refuse(model: onnx.ModelProto, path: Path, *, size: int) -> None:
    """Raise StepError where ONNX Runtime cannot load the model `model` at `path`, or where no sample can be its input.

    `size` is the number of bytes of the model with its external data. The values of tensors are read only where the
    model is small, because then ONNX Runtime opens it.
    """
    _refuse_header(model, path.name)
    _refuse_operators(model, path.name)
    for spec in onnx_files.inputs(model).values():
        onnx_source.refuse_unusual(spec)
    for spec in onnx_files.outputs(model).values():
        onnx_source.refuse_unusual(spec, "output")
    if size <= _TRIED_BYTES:
        _refuse_by_trial(model, path)


def _refuse_header(model: onnx.ModelProto, name: str) -> None:
    """Raise StepError for an IR version or an opset that tiny models show ONNX Runtime not to read."""
    versions = {entry.domain: entry.version for entry in model.opset_import}
    if not versions:
        raise StepError(
            f"{name} names no opset, and no operator can be understood without it",
            ["its field opset_import is empty"],
            "export the model again, or set opset_import to the opset that it was exported for",
        )
    runtime = f"ONNX Runtime {_version()}"
    problem = _problem(model.ir_version, {"": _SAFE_OPSET})
    if problem is not None:
        raise StepError(
            f"{name} has the IR version {model.ir_version}, which {runtime} cannot read",
            [problem],
            "save it with an older one (model.ir_version = 10; onnx.save(model, path)), or upgrade onnxruntime",
        )
    for domain, version in versions.items():
        problem = _problem(_SAFE_IR, {"": _SAFE_OPSET, domain: version})
        if problem is not None:
            raise StepError(
                f"{name} uses opset {version} of {domain or 'ai.onnx'}, which {runtime} cannot read",
                [problem],
                "export it for an older opset, convert it with onnx.version_converter, or install a newer onnxruntime",
            )


def _problem(ir_version: int, versions: Mapping[str, int]) -> str | None:
    """Return why ONNX Runtime cannot load a tiny model with an IR version and opsets; None where it can."""
    import onnx
    from onnx import helper

    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "probe", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(*entry) for entry in versions.items()])
    model.ir_version = ir_version
    try:
        ort.refuse_unloadable(model.SerializeToString())
    except StepError as error:
        return error.facts[0]
    return None


def _refuse_operators(model: onnx.ModelProto, name: str) -> None:
    """Raise StepError for operators that ONNX Runtime has no definition of, in the opsets that the model imports."""
    unknown = sorted(set(_unknown(model)))
    if not unknown:
        return
    domains = sorted({domain for domain, _ in unknown if domain not in opsets.STANDARD})
    shown = [f"{operator} ({domain or f'ai.onnx, opset {opsets.version(model)}'})" for domain, operator in unknown]
    what = f"{name} has operators that ONNX Runtime {_version()} does not know"
    if domains:
        hint = "operators of another library are not loaded: export the model with ONNX's own operators"
    else:
        hint = "export it for the opset that has the operator, or for an older one without it"
    raise StepError(what, [lists.first_of(shown, 6)], hint)


def _unknown(model: onnx.ModelProto) -> Iterator[tuple[str, str]]:
    own = {(function.domain, function.name) for function in model.functions}
    versions = opsets.versions(model)
    for node in onnx_files.nodes(model):
        domain = "" if node.domain in opsets.STANDARD else node.domain
        first = _schemas().get((domain, node.op_type))
        if (node.domain, node.op_type) not in own and (first is None or first > versions.get(domain, 0)):
            yield domain, node.op_type


@cache
def _schemas() -> dict[tuple[str, str], int]:
    """Return each operator that ONNX Runtime knows, by domain and name -> the first opset that has the operator."""
    from onnxruntime.capi import onnxruntime_pybind11_state as native

    first: dict[tuple[str, str], int] = {}
    for schema in native.get_all_operator_schema():
        domain = "" if schema.domain in opsets.STANDARD else schema.domain
        first[domain, schema.name] = min(schema.since_version, first.get((domain, schema.name), schema.since_version))
    return first


def _refuse_by_trial(model: onnx.ModelProto, path: Path) -> None:
    """Open the file, as `fetch` copies it. Raises StepError with what ONNX Runtime says, and with advice."""
    try:
        ort.refuse_unloadable(_in_float32(model, path) if widening.has_half(model, "BFLOAT16") else path)
    except StepError as error:
        if not any("NOT_IMPLEMENTED" in fact for fact in error.facts):
            raise
        raise StepError(
            f"{path.name} has an operator that ONNX Runtime {_version()} has no code for",
            [*error.facts, f"the model uses opset {opsets.version(model)}"],
            _other_export(model),
        ) from error


def _in_float32(model: onnx.ModelProto, path: Path) -> bytes:
    """Return a small model in bf16 as `fetch` copies it: in float32."""
    copy = onnx_files.copied(model)
    external_data.attach(onnx_files.tensors(copy), path)
    for tensor in onnx_files.tensors(copy):
        mapped_weights.load(tensor)
    serialized: bytes = widening.widened(copy).SerializeToString()
    return serialized


def _other_export(model: onnx.ModelProto) -> str:
    """Return the hint for an operator without code: what about the model may be the reason."""
    if opsets.version(model) < _COMPLETE_OPSET:
        return "export it for opset 13 or newer (or convert it with onnx.version_converter), and in float32"
    return "export it in float32, and where it is in float32 already with other operators in place of this one"


def _version() -> str:
    import onnxruntime

    return str(onnxruntime.__version__)
