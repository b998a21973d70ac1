"""trtexec: the options of a trtexec command as fields of a recipe, and those that no field stands for."""

# Source of the options: `trtexec --help` of TensorRT 8.6 to 10.11.

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from engine.drafts import foreign
from engine.drafts.foreign import Foreign
from engine.errors import UsageError

TOOL = "trtexec"
_PRECISIONS = ("int4", "fp8", "int8", "bf16", "fp16")
"""The flags for precisions; of several, the first counts, and the rest of the network has the higher precision."""
_EXTENTS = ("minShapes", "optShapes", "maxShapes")
_POOLS = {
    "workspace": "workspace", "dlaSRAM": "dla_managed_sram", "dlaLocalDRAM": "dla_local_dram",
    "dlaGlobalDRAM": "dla_global_dram", "tacticSharedMem": "tactic_shared_memory",
}  # fmt: skip
_UNITS = {"": "MiB", "b": "", "k": "KiB", "m": "MiB", "g": "GiB", "kib": "KiB", "mib": "MiB", "gib": "GiB"}
_FLAGS = {
    "versionCompatible": "version_compatible", "vc": "version_compatible", "excludeLeanRuntime": "exclude_lean_runtime",
    "stripWeights": "strip_plan", "refit": "refit", "allowWeightStreaming": "weight_streaming",
    "useCudaGraph": "cuda_graph",
}  # fmt: skip
_NUMBERS = {
    "builderOptimizationLevel": "optimization_level", "maxAuxStreams": "max_aux_streams",
    "avgTiming": "avg_timing_iterations",
}  # fmt: skip
_LEVELS = {"0": "none", "1": "fast", "2": "moderate", "3": "full"}
_COMPATIBILITY = {"none": "none", "ampere+": "ampere-plus", "samecomputecapability": "same-compute-capability"}
_VERBOSITY = {
    "layer_names_only": "layer_names_only", "default": "layer_names_only", "detailed": "detailed",
    "verbose": "detailed", "none": "none",
}  # fmt: skip
_LOGS = "`recipe logs` prints the log of the build, and `recipe show ENGINE.plan` the layers"
_ROUNDS = "`bench` repeats calls until its numbers are steady, in turns with what you had"
_ALWAYS = "it is always so"
_TYPES = "the graph that `recipe` writes has the types: see `precision` and `quantize`"
_LOADS = "`recipe loadtest` loads the package with many requests at once"
_TRANSFERS = "`bench` measures with and without transfers on a GPU"
_IMPLICIT = "they are for networks without an explicit batch, which ONNX files never are"
_CACHE = (
    "the store keeps a timing cache for each device and version; `tensorrt.timing_cache` names a file that is there"
)
_GROUPS = {
    "saveEngine": "the engine lies in the package, build/NAME",
    "explicitBatch stronglyTyped fp32": _ALWAYS,
    "verbose dumpProfile exportProfile dumpLayerInfo exportLayerInfo separateProfileRun seperateProfileRun dumpOutput "
    "exportOutput exportTimes dumpRefit": _LOGS,
    "iterations duration warmUp avgRuns sleepTime idleTime percentile timeRefit timeDeserialize": _ROUNDS,
    "streams threads infStreams": _LOADS,
    "buildOnly skipInference": "leave `bench` and `validate` out to build only",
    "noDataTransfers useSpinWait exposeDMA useManagedMemory": _TRANSFERS,
    "layerPrecisions precisionConstraints layerOutputTypes inputIOFormats outputIOFormats": _TYPES,
    "batch maxBatch": _IMPLICIT,
    "useDLACore allowGPUFallback layerDeviceTypes": "there is no target for DLA cores yet",
    "best": "name the precision: `precision: fp16` or int8, which is validated against the original model",
    "calib": "int8 is calibrated on samples: `calibrate: {samples: FILE}`",
    "device": "the target is a kind of GPU, `target: {device: T4}`; CUDA_VISIBLE_DEVICES chooses the card",
    "loadInputs": "`validate.samples` names the inputs, an .npz file",
    "loadEngine": "an engine is built, never loaded from elsewhere",
    "minTiming": "TensorRT 10 has no such setting",
    "tacticSources": "TensorRT's default tactics are used",
    "preview": "preview features of TensorRT are not used",
    "timingCacheFile": _CACHE,
    "plugins": "`tensorrt.plugins` names libraries that are there; this one is not",
}
"""The names of options without a field, and the reason."""
_REASONS = {name: reason for names, reason in _GROUPS.items() for name in names.split()}
_ALIASES = {"staticPlugins": "plugins", "dynamicPlugins": "plugins", "setPluginsToSerialize": "plugins"}


def read(text: str) -> Foreign:
    """Return the settings of a trtexec command. Raises UsageError for text that is none, or without an ONNX file."""
    command = foreign.words(text, TOOL)
    settings = Foreign(TOOL)
    shapes: dict[str, dict[str, str]] = {}
    flags: dict[str, str] = {}
    for name, value, written in foreign.options(command, {}):
        key = _ALIASES.get(name.lstrip("-"), name.lstrip("-"))
        if not name:
            settings.leave(written, "it is no option of trtexec")
        elif key == "onnx":
            settings.model = value
        elif key in (*_EXTENTS, "shapes"):
            shapes[key] = {**shapes.get(key, {}), **_shapes(value, written)}
        elif key in _PRECISIONS:
            flags[key] = written
        elif not _put(settings, key, value, written):
            settings.leave(written, _REASONS.get(key))
    if settings.model is None:
        raise UsageError(
            "the command names no ONNX file", [text[:200]], "--onnx=model.onnx; other formats are not read"
        )
    _put_precision(settings, flags)
    _put_profile(settings, shapes)
    return settings


def _put(settings: Foreign, key: str, value: str, written: str) -> bool:
    """Set the field of an option of TensorRT's builder; false for an option without one."""
    path, take = _OPTIONS.get(key, ("", _nothing))
    result = take(value)
    if result is None:
        return False
    before = settings.fields.get(path)
    both = isinstance(before, dict) and isinstance(result, dict)
    merged = {**before, **result} if both and isinstance(before, dict) else result
    settings.put(path, merged, f"{settings.origins[path]} {written}" if both else written)
    return True


def _put_precision(settings: Foreign, flags: Mapping[str, str]) -> None:
    chosen = next((each for each in _PRECISIONS if each in flags), "fp32")
    settings.put("precision", chosen, " ".join(flags.values()) or "without --fp16 or --int8, TensorRT computes in fp32")
    if "int8" in flags:
        settings.leave(
            "the scales of --int8", "int8 needs samples: `calibrate: {samples: FILE}`, or a graph with scales"
        )


def _put_profile(settings: Foreign, shapes: Mapping[str, Mapping[str, str]]) -> None:
    """Set the profile; trtexec takes a missing minimum, optimum or maximum from the others."""
    fixed = shapes.get("shapes", {})
    names = dict.fromkeys(name for each in shapes.values() for name in each)
    profile: dict[str, list[Any]] = {}
    for name in names:
        least, usual, most = (shapes.get(extent, {}).get(name) for extent in _EXTENTS)
        size = fixed.get(name)
        usual = usual or most or least or size
        extents = [least or usual, usual, most or usual]
        if all(extent and extent.isdecimal() for extent in extents):  # an input with one axis
            profile[f"{name}_0"] = [int(extent or 0) for extent in extents]
        else:
            profile[name] = extents
    if profile:
        given = [f"--{key}" for key in (*_EXTENTS, "shapes") if key in shapes]
        settings.put("profiles", [profile], ", ".join(given))


def _shapes(value: str, written: str) -> dict[str, str]:
    """Return the shape of each input, as in `images:1x3x640x640,scale:1x2`; a colon may be part of a name."""
    shapes: dict[str, str] = {}
    for each in value.split(","):
        name, colon, size = each.strip().strip("'\"").rpartition(":")
        size = size.strip("'\"")
        if not colon or not re.fullmatch(r"\d+(x\d+)*", size):
            raise UsageError(f"{written} has no shape for an input: {each!r}", hint="--minShapes=input:1x3x224x224")
        shapes[name.strip("'\"")] = size
    return shapes


def _pools(value: str) -> dict[str, str] | None:
    """Return the sizes of `workspace:2048,dlaSRAM:1M`; the unit of a plain number is MiB."""
    parts = [each.partition(":")[::2] for each in value.split(",")]
    sizes = {_POOLS[name]: size for name, number in parts if name in _POOLS and (size := _size(number))}
    return sizes if len(sizes) == len(parts) else None


def _size(text: str) -> str | None:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text.strip())
    unit = None if match is None else _UNITS.get(match[2].lower())
    if match is None or unit is None:
        return None
    number = float(match[1])
    return f"{int(number) if number == int(number) else number}{unit}"


def _number(value: str) -> int | None:
    return int(value) if re.fullmatch(r"-?\d+", value) else None


def _nothing(_value: str) -> None:
    return None


_OPTIONS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "workspace": ("tensorrt.memory_pool", lambda value: _pools(f"workspace:{value}")),
    "memPoolSize": ("tensorrt.memory_pool", _pools),
    "tilingOptimizationLevel": ("tensorrt.tiling_optimization_level", _LEVELS.get),
    "hardwareCompatibilityLevel": ("tensorrt.compatibility", lambda value: _COMPATIBILITY.get(value.lower())),
    "profilingVerbosity": ("tensorrt.profiling_verbosity", _VERBOSITY.get),
    "sparsity": ("tensorrt.sparse_weights", lambda value: True if value == "enable" else None),
    "timingCacheFile": ("tensorrt.timing_cache", lambda value: value if os.path.isfile(value) else None),
    "plugins": ("tensorrt.plugins", lambda value: [value] if os.path.isfile(value) else None),
    **{name: (f"tensorrt.{option}", _number) for name, option in _NUMBERS.items()},
    **{name: (f"tensorrt.{option}", lambda _value: True) for name, option in _FLAGS.items()},
    "noTF32": ("tf32", lambda _value: False),
}
"""An option of trtexec -> the field of a recipe, and a function that returns the field's value; None for no value."""
