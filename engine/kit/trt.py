"""TensorRT: a native engine from an unfused ONNX graph (not yet run on hardware)."""

# Coded to NVIDIA's documented Python API of TensorRT 10 (IBuilderConfig, IOptimizationProfile, OnnxParser). Of its
# calls only those that TensorRT-RTX shares have been made for real: parsing, profiles, memory pools, building.

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.kit import onnx_files
from engine.kit.onnx_files import Input

if TYPE_CHECKING:
    from engine.recipe.schema import Profile

DESCRIPTION = "engine.json"
"""Beside an engine: what it takes and gives, which only the GPU that it is for could tell."""

Shape = tuple[int, ...]
_STRONGLY_TYPED_ONLY = 11
_ERRORS_SHOWN = 8


@dataclass(frozen=True)
class Options:
    """What the builder is told. `memory_pool` is bytes by the pool's name, `optimization_level` 0 to 5."""

    fp16: bool = False
    memory_pool: Mapping[str, int] = field(default_factory=dict)
    optimization_level: int | None = None
    same_compute_capability: bool = False


@dataclass(frozen=True)
class Description:
    """What an engine takes and gives, and how many optimisation profiles it has."""

    inputs: Mapping[str, Input]
    outputs: Mapping[str, Input]
    profiles: int


def profile_shapes(inputs: Mapping[str, Input], profile: Profile) -> dict[str, tuple[Shape, Shape, Shape]]:
    """Return the least, usual and greatest shape of every input that has a free axis.

    Raises StepError where the profile says nothing about an axis, or the model has no such axis.
    """
    free = {axis for value in inputs.values() for axis in value.shape if isinstance(axis, str)}
    missing, unknown = sorted(free - set(profile)), sorted(set(profile) - free)
    if missing or unknown:
        what = (
            f"a profile leaves open: {', '.join(missing)}"
            if missing
            else f"a profile names an axis that the model does not have: {', '.join(unknown)}"
        )
        said = ", ".join(f"{axis}: {_range(profile, axis)}" for axis in sorted(free))
        shapes = [f"{name}: {' x '.join(map(str, value.shape))}" for name, value in inputs.items()]
        raise StepError(what, shapes, f"a profile of this model says {{{said}}}" if free else "take the profiles out")
    return {
        name: (_extents(value, profile, "min"), _extents(value, profile, "opt"), _extents(value, profile, "max"))
        for name, value in inputs.items()
        if any(isinstance(axis, str) for axis in value.shape)
    }


def check_version(found: str, wanted: str | None) -> None:
    """Raise StepError where the installed TensorRT is not the recipe's ("10.x", "10.4"), or not supported."""
    parts = [part for part in (wanted or "").split(".") if part not in {"", "x", "*"}]
    if parts != found.split(".")[: len(parts)]:
        raise StepError(
            f"the recipe asks for TensorRT {wanted}, and {found} is installed",
            hint=f"pip install 'tensorrt=={'.'.join(parts)}.*', or change tensorrt.version",
        )
    if int(found.split(".", maxsplit=1)[0]) >= _STRONGLY_TYPED_ONLY:
        raise StepError(
            f"not supported yet: TensorRT 11 (installed is {found})",
            ["it has no fp16 flag any more: the precision must be in the ONNX graph"],
            'install TensorRT 10 and set tensorrt.version to "10.x"',
        )


def build(trt: Any, model: Path, shapes: Sequence[Mapping[str, tuple[Shape, Shape, Shape]]], options: Options) -> bytes:
    """Return the serialised engine of an ONNX file. `trt` is the module `tensorrt`, `shapes` a mapping a profile.

    Raises StepError with what the parser or the builder said.
    """
    log = _log(trt)
    builder = trt.Builder(log)
    network = builder.create_network(0)
    _parse(trt, network, log, model)
    config = builder.create_builder_config()
    _configure(trt, config, options)
    for number, inputs in enumerate(shapes):
        _add_profile(builder, config, inputs, number)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise StepError(
            "TensorRT could not build the engine",
            log.problems[-_ERRORS_SHOWN:] or ["it gave no reason"],
            "more memory_pool.workspace, narrower profiles or another precision may help",
        )
    return bytes(plan)


def save_description(directory: Path, description: Description) -> None:
    """Write what an engine takes and gives beside it."""
    (directory / DESCRIPTION).write_text(json.dumps(asdict(description), indent=1) + "\n", "utf-8")


def describe(directory: Path) -> Description:
    """Return what an engine takes and gives. Raises StepError where nobody wrote that down."""
    path = directory / DESCRIPTION
    if not path.is_file():
        raise StepError(f"the TensorRT engine comes without its {DESCRIPTION}", hint="build it again")
    said = json.loads(path.read_text("utf-8"))
    inputs, outputs = (
        {name: Input(**{**value, "shape": tuple(value["shape"])}) for name, value in said[side].items()}
        for side in ("inputs", "outputs")
    )
    return Description(inputs, outputs, said["profiles"])


def description(graph: Any, profiles: int) -> Description:
    """Return what an engine of this ONNX graph takes and gives."""
    return Description(onnx_files.inputs(graph), onnx_files.outputs(graph), max(1, profiles))


def _configure(trt: Any, config: Any, options: Options) -> None:
    if options.fp16:
        config.set_flag(trt.BuilderFlag.FP16)
    for pool, size in options.memory_pool.items():
        config.set_memory_pool_limit(getattr(trt.MemoryPoolType, pool.upper()), size)
    if options.optimization_level is not None:
        config.builder_optimization_level = options.optimization_level
    if options.same_compute_capability:
        config.hardware_compatibility_level = trt.HardwareCompatibilityLevel.SAME_COMPUTE_CAPABILITY


def _add_profile(builder: Any, config: Any, inputs: Mapping[str, tuple[Shape, Shape, Shape]], number: int) -> None:
    if not inputs:
        return
    profile = builder.create_optimization_profile()
    for name, (least, usual, greatest) in inputs.items():
        profile.set_shape(name, least, usual, greatest)
    if config.add_optimization_profile(profile) < 0:
        facts = [f"{name}: {least} to {greatest}" for name, (least, _, greatest) in inputs.items()]
        raise StepError(f"TensorRT does not accept profile {number}", facts)


def _parse(trt: Any, network: Any, log: Any, model: Path) -> None:
    parser = trt.OnnxParser(network, log)
    if parser.parse_from_file(str(model)):
        return
    errors = [parser.get_error(number) for number in range(parser.num_errors)]
    facts = [f"{error.node_operator()} {error.node_name()}: {error.desc()}" for error in errors[:_ERRORS_SHOWN]]
    raise StepError(
        "TensorRT cannot read the ONNX graph",
        facts or log.problems[-_ERRORS_SHOWN:],
        "an operator that TensorRT does not know? see its operator support matrix, or use runtime: onnxruntime",
    )


def _log(trt: Any) -> Any:
    """Return a logger that prints what TensorRT says and remembers what went wrong."""
    severe = (trt.ILogger.Severity.INTERNAL_ERROR, trt.ILogger.Severity.ERROR)
    quiet = (trt.ILogger.Severity.VERBOSE, trt.ILogger.Severity.INFO)

    class Log(trt.ILogger):  # type: ignore[misc]  # its base is known only where TensorRT is
        def __init__(self) -> None:
            trt.ILogger.__init__(self)
            self.problems: list[str] = []

        def log(self, severity: Any, message: str) -> None:
            if severity in severe:
                self.problems.append(message)
            if severity not in quiet:
                print(message)

    return Log()


def _extents(value: Input, profile: Profile, end: str) -> Shape:
    return tuple(axis if isinstance(axis, int) else int(getattr(profile[axis], end)) for axis in value.shape)


def _range(profile: Profile, axis: str) -> str:
    said = profile.get(axis)
    return f"[{said.min}, {said.opt}, {said.max}]" if said else "[1, 8, 32]"
