"""The builder: it looks at what it is told as TensorRT does, and packs the ONNX file up as an engine."""

# ruff: noqa: A002 - the names are those of TensorRT

import json
import math
import os
from pathlib import Path

from tensorrt import _machine, _network, _precisions
from tensorrt._enums import (
    BuilderFlag,
    HardwareCompatibilityLevel,
    MemoryPoolType,
    NetworkDefinitionCreationFlag,
    ProfilingVerbosity,
    TilingOptimizationLevel,
)  # fmt: skip
from tensorrt._logging import complain, register

MAGIC = b"FAKE ENGINE"
_SEEN = []
"""What the configurations of this process were told, in order."""
_SMALLEST_WORKSPACE = 1 << 10


class IHostMemory:
    __slots__ = ("_content",)

    def __init__(self, content):
        self._content = content

    nbytes = property(lambda self: len(self._content))

    def __bytes__(self):
        return self._content

    def __len__(self):
        return len(self._content)


class ITimingCache:
    __slots__ = ("_content",)
    _BEGIN = b"FAKE TIMING CACHE of "

    def __init__(self, content):
        self._content = content

    def serialize(self):
        return IHostMemory(self._content)

    def _fits(self):
        return not self._content or self._content.startswith(self._own())

    def _own(self):
        return self._BEGIN + f"{_machine.gpu()['name']} {_machine.VERSION}:".encode()

    def _measure(self):
        self._content = (self._content or self._own()) + b"."


class IOptimizationProfile:
    __slots__ = ("_shapes", "_values")

    def __init__(self):
        self._shapes, self._values = {}, {}

    def set_shape(self, input, min, opt, max):
        for shape in (min, opt, max):
            if not isinstance(shape, _network.Dims):
                raise TypeError("a shape is Dims")
        self._shapes[input] = (min, opt, max)

    def set_shape_input(self, input, min, opt, max):
        if any(not a <= b <= c for a, b, c in zip(min, opt, max, strict=True)):
            # seen with tensorrt_rtx 1.7.1
            raise RuntimeError("opt input provided for shape tensor is inconsistent with other inputs.")
        self._values[input] = [[*min], [*opt], [*max]]

    def _is_ordered(self):
        return all(a <= b <= c for ends in self._shapes.values() for a, b, c in zip(*ends, strict=True))


class IProgressMonitor:
    def __init__(self):
        pass

    def phase_start(self, phase_name, parent_phase, num_steps):
        raise NotImplementedError

    def step_complete(self, phase_name, step):
        raise NotImplementedError

    def phase_finish(self, phase_name):
        raise NotImplementedError


def init_libnvinfer_plugins(logger, namespace):
    register(logger)
    _SEEN.append(("init_libnvinfer_plugins", namespace))
    return True


class IPluginRegistry:
    __slots__ = ("_plugins",)

    def __init__(self, plugins):
        self._plugins = plugins

    def load_library(self, plugin_path):
        if not os.path.isfile(plugin_path):
            complain(f"IPluginRegistry::loadLibrary: Error Code 6: Unable to load library: {plugin_path}")
            return None
        if Path(plugin_path).stem in self._plugins:
            complain(f"IPluginRegistry::loadLibrary: Error Code 3: {plugin_path}: a plugin is registered already")
            return None
        self._plugins.append(Path(plugin_path).stem)
        return plugin_path

    def deregister_library(self, handle):
        self._plugins.remove(Path(handle).stem)


_KINDS = {
    "avg_timing_iterations": int, "builder_optimization_level": int, "max_aux_streams": int,
    "tiling_optimization_level": TilingOptimizationLevel, "profiling_verbosity": ProfilingVerbosity,
    "hardware_compatibility_level": HardwareCompatibilityLevel, "plugins_to_serialize": list,
    "progress_monitor": IProgressMonitor,
}  # fmt: skip


class IBuilderConfig:
    __slots__ = ("_flags", "_pools", "_profiles", "_cache", *_KINDS)

    def __init__(self):
        self._flags, self._pools, self._profiles, self._cache = {BuilderFlag.TF32}, {}, [], None
        object.__setattr__(self, "profiling_verbosity", ProfilingVerbosity.LAYER_NAMES_ONLY)
        object.__setattr__(self, "hardware_compatibility_level", HardwareCompatibilityLevel.NONE)
        object.__setattr__(self, "plugins_to_serialize", [])
        object.__setattr__(self, "progress_monitor", None)

    def __setattr__(self, name, value):
        if name in _KINDS and type(value) is not _KINDS[name] and not isinstance(value, IProgressMonitor):
            raise TypeError(f"{name} is no {type(value)}")
        object.__setattr__(self, name, value)
        if name in _KINDS and name != "progress_monitor":
            _SEEN.append((name, value))

    num_optimization_profiles = property(lambda self: len(self._profiles))

    def set_flag(self, flag):
        if not isinstance(flag, BuilderFlag):
            raise TypeError("a BuilderFlag is wanted")
        if flag == BuilderFlag.EXCLUDE_LEAN_RUNTIME and BuilderFlag.VERSION_COMPATIBLE not in self._flags:
            complain("IBuilderConfig::setFlag: kEXCLUDE_LEAN_RUNTIME can only be set if kVERSION_COMPATIBLE is set.")
            return
        self._flags.add(flag)
        _SEEN.append(("set_flag", flag))

    def clear_flag(self, flag):
        if not isinstance(flag, BuilderFlag):
            raise TypeError("a BuilderFlag is wanted")
        self._flags.discard(flag)
        _SEEN.append(("clear_flag", flag))

    def set_memory_pool_limit(self, pool, pool_size):
        if not isinstance(pool, MemoryPoolType):
            raise TypeError("a MemoryPoolType is wanted")
        if pool.name.startswith("DLA"):
            complain("Setting DLA memory pool size on TensorRT build with DLA disabled.")
            return
        self._pools[pool] = pool_size
        _SEEN.append(("set_memory_pool_limit", pool, pool_size))

    def add_optimization_profile(self, profile):
        if not profile._is_ordered():
            complain(
                "Invalid optimization profiles, please ensure that the optimization profiles satisfy MIN<=OPT<=MAX."
            )
            return -1
        self._profiles.append(profile)
        return len(self._profiles) - 1

    def create_timing_cache(self, serialized_timing_cache):
        return ITimingCache(bytes(serialized_timing_cache))

    def set_timing_cache(self, cache, ignore_mismatch):
        if not cache._fits() and not ignore_mismatch:
            return False
        self._cache = cache
        return True


class Builder:
    __slots__ = ()

    def __init__(self, logger):
        register(logger)

    def create_network(self, flags=0):
        _SEEN.append(("create_network", flags))
        return _network.INetworkDefinition(flags)

    def create_builder_config(self):
        return IBuilderConfig()

    def create_optimization_profile(self):
        return IOptimizationProfile()

    def get_plugin_registry(self):
        return IPluginRegistry(_network.PLUGINS)

    def build_serialized_network(self, network, config):
        if not network._flags & 1 << NetworkDefinitionCreationFlag.STRONGLY_TYPED:
            complain("the fake builds strongly typed networks only")
            return None
        problem = _problem(network, config)
        if problem:
            complain(f"IBuilder::buildSerializedNetwork: Error Code 4: {problem}")
            return None
        _report(config.progress_monitor)
        if config._cache is not None:
            config._cache._measure()
        return IHostMemory(_packed(network, config))


def _problem(network, config):
    lacking = _precisions.refused(network._kinds, _machine.gpu()["sm"]) or _without_values(network, config)
    if lacking:
        return lacking
    initialized = {tensor.name for tensor in network._model.graph.initializer}
    for value in network._model.graph.input:
        dims = value.type.tensor_type.shape.dim
        if value.name in initialized or all(dim.HasField("dim_value") for dim in dims):
            continue
        if not config._profiles:
            return "Network has dynamic or shape inputs, but no optimization profile has been defined."
        for number, profile in enumerate(config._profiles):
            if value.name not in profile._shapes:
                return f"Dynamic input tensor {value.name} is missing dimensions in profile {number}."
            for axis, (dim, most) in enumerate(zip(dims, profile._shapes[value.name][2], strict=True)):
                if dim.HasField("dim_value") and dim.dim_value != most:
                    return f"Dimension mismatch for tensor {value.name} and profile {number}. At dimension axis {axis}"
    if config._pools.get(MemoryPoolType.WORKSPACE, _SMALLEST_WORKSPACE) < _SMALLEST_WORKSPACE:
        return f"Internal Error (Could not find any implementation for node {network.get_layer(0).name}.)"
    return ""


def _without_values(network, config):
    """Return the complaint about values of a profile.

    The words are those of TensorRT-RTX 1.7.1, which says them for each of these profiles. The rules are NVIDIA's, in
    the documentation of `IOptimizationProfile.set_shape_input`: it must be called for every input that is a shape
    tensor, and for no other input.
    """
    inputs = {value.name: value for value in map(network.get_input, range(network.num_inputs))}
    sizes = [name for name, value in inputs.items() if value.is_shape_tensor]
    if sizes and not config._profiles:
        return "Network has dynamic or shape inputs, but no optimization profile has been defined."
    for number, profile in enumerate(config._profiles):
        for name in sizes:
            if name not in profile._values:
                return f"Optimization profile {number} is missing values for shape input tensor {name}."
            count, dims = len(profile._values[name][1]), inputs[name].shape
            if count != math.prod(dims):
                return (f"Optimization profile {number} provides number of elements in shape tensor {name} to be "
                        f"{count}. This doesn't match product of tensor dimensions {dims}.")  # fmt: skip
        others = [name for name in profile._values if name not in sizes]
        if others:
            return f"Optimization profile {number} has values for {others[0]}, which is no shape tensor."
    return ""


def _report(monitor):
    if monitor is None:
        return
    monitor.phase_start("Building engine", None, 2)
    for step in range(2):
        monitor.phase_start("Timing tactics", "Building engine", 4)
        for inner in range(4):
            if not monitor.step_complete("Timing tactics", inner):
                raise AssertionError("nobody cancels a build")
        monitor.phase_finish("Timing tactics")
        monitor.step_complete("Building engine", step)
    monitor.phase_finish("Building engine")


def _packed(network, config):
    """Return the engine: no two builds give the same bytes. Only a version-compatible engine holds its plugins."""
    compatible = BuilderFlag.VERSION_COMPATIBLE in config._flags
    head = {
        "gpu": _machine.gpu()["name"], "sm": _machine.gpu()["sm"], "version": _machine.VERSION,
        "compatibility": config.hardware_compatibility_level.name,
        "verbosity": config.profiling_verbosity.name,
        "host_code": compatible,
        "plugins": [Path(path).stem for path in config.plugins_to_serialize if compatible],
        "needs": sorted({node.op_type for node in network._model.graph.node} & set(_network.PLUGINS)),
        "profiles": [profile._shapes for profile in config._profiles],
        "values": [profile._values for profile in config._profiles],
        "layers": [[network.get_layer(n).name, network.get_layer(n).get_output(0).dtype.name]
                   for n in range(network.num_layers)],
    }  # fmt: skip
    text = json.dumps(head).encode()
    return b"".join([MAGIC, os.urandom(16), len(text).to_bytes(8, "little"), text, network._model.SerializeToString()])
