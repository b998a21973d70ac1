"""A config.pbtxt of Triton: its fields as `package.triton` of a recipe, and those that the model itself decides."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.drafts.foreign import Foreign
from engine.errors import UsageError
from engine.runtimes import registry
from engine.system import regular
from engine.text import distribution

TOOL = "config.pbtxt"
_OF_THE_MODEL = {
    "input": "the package lists the inputs of the built model",
    "output": "the package lists the outputs of the built model",
    "default_model_filename": "the package names its own files",
}
_RUNTIMES = {
    "tensorrt_plan": "tensorrt", "tensorrt": "tensorrt", "onnxruntime_onnx": "onnxruntime",
    "onnxruntime": "onnxruntime", "openvino": "openvino", "pytorch_libtorch": "onnxruntime", "pytorch": "onnxruntime",
}  # fmt: skip
"""The platform or the backend of Triton -> the runtime of a recipe."""
_EXPORTED = ("pytorch_libtorch", "pytorch")
"""The platforms and backends whose models a recipe exports to ONNX."""
_PIPELINES = ("ensemble", "python", "custom", "dali")
_MODELS = ("1/model.onnx", "model.onnx")
"""Where the model of a repository lies, relative to its config.pbtxt."""


def read(path: Path) -> Foreign:
    """Return the settings of a config.pbtxt. Raises UsageError for a file that is none, or of a pipeline."""
    config = _parsed(path)
    settings = Foreign(
        TOOL, model=next((str(path.parent / name) for name in _MODELS if (path.parent / name).is_file()), None)
    )
    engine = config.backend or config.platform
    if engine in _PIPELINES:
        raise UsageError(
            f"{path} is a model for Triton's backend {engine!r}, which runs code or other models",
            hint="name the config.pbtxt of the model that it calls",
        )
    runtime = _RUNTIMES.get(engine)
    needs_gpu = runtime is not None and not registry.find(runtime).on_cpus
    if runtime is not None and not needs_gpu:
        settings.put("target.runtime", runtime, f"{'backend' if config.backend else 'platform'}: {engine}")
    if engine in _EXPORTED or (engine and runtime is None and "onnx" not in engine):
        settings.leave(engine, "the package has an ONNX model or a TensorRT engine: see `target.runtime`")
    settings.device = None if _is_on_gpu(config) or needs_gpu else "cpu"
    for name, value in {"max_batch_size": config.max_batch_size, **plain(config)}.items():
        if name in ("platform", "backend"):
            continue
        if name in _OF_THE_MODEL:
            settings.leave(name, _OF_THE_MODEL[name])
        else:
            settings.put(f"package.triton.{name}", value, name)
    return settings


def _parsed(path: Path) -> Any:
    try:
        from google.protobuf import text_format
        from tritonclient.grpc import model_config_pb2
    except ImportError:
        raise UsageError("config.pbtxt is read by tritonclient, which is not installed",
                         hint=distribution.install("onnx")) from None  # fmt: skip
    try:
        return text_format.Parse(regular.read_text(path), model_config_pb2.ModelConfig())
    except FileNotFoundError:
        raise UsageError(f"there is no {path}", hint="name a config.pbtxt of a Triton model repository") from None
    except (OSError, UnicodeDecodeError, text_format.ParseError) as error:
        raise UsageError(f"{path} is no config.pbtxt: {error}", hint="name a config.pbtxt of Triton") from None


def _is_on_gpu(config: Any) -> bool:
    groups = any(group.kind == group.KIND_GPU for group in config.instance_group)
    return groups or bool(config.optimization.execution_accelerators.gpu_execution_accelerator)


def plain(message: Any) -> dict[str, Any]:
    """Return the fields that a protobuf message sets, as a recipe writes them: enums by name, numbers as numbers."""
    return {field.name: _value(field, value) for field, value in message.ListFields()}


def _value(field: Any, value: Any) -> Any:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        of_values = field.message_type.fields_by_name["value"]
        return {key: _one(of_values, value[key]) for key in sorted(value)}
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__len__"):
        return _one(field, value)
    return [_one(field, each) for each in value]


def _one(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return plain(value)
    if field.enum_type is not None:
        return field.enum_type.values_by_number[value].name
    return value.decode() if isinstance(value, bytes) else value
