"""Builder: turns an ONNX file and its profiles into the bytes of an engine, with TensorRT or TensorRT-RTX."""

# The network is strongly typed: every layer computes in the types of the graph. TensorRT 10 needs a flag for this;
# TensorRT 11 accepts the flag and ignores it (NVIDIA, Migrating from TensorRT 10.x to 11.x).

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.runtimes.tensorrt import failures as trt_failures
from engine.runtimes.tensorrt import layer_types, plugin_libraries
from engine.runtimes.tensorrt import log as trt_log
from engine.runtimes.tensorrt import options as trt_options
from engine.runtimes.tensorrt.api import trt
from engine.runtimes.tensorrt.options import BuilderOptions
from engine.runtimes.tensorrt.prepared_graph import Extents, PreparedGraph, in_words

if TYPE_CHECKING:
    import tensorrt

    from engine.runtimes.tensorrt.log import Log


@dataclass(frozen=True)
class Order:
    """The input of one build of an engine: a prepared graph, and the builder's options."""

    folder: Path
    """The directory of the ONNX file."""
    graph: PreparedGraph
    options: BuilderOptions
    sms: tuple[int, ...] = ()
    """Compute capabilities, times ten, of a TensorRT-RTX engine; empty for TensorRT, which builds for the local GPU."""
    plugins: Sequence[Path] = ()
    timing_cache: bytes | None = None
    """TensorRT's timing cache of earlier builds (not RTX); empty to begin a new cache, None to use no cache."""


@dataclass(frozen=True)
class Built:
    """The result of a build: the engine, the number of layers of its network by type, and the timing cache.

    `products` are the types of the network's matrix products and convolutions, by name. `shape_tensors` are the names
    of the inputs whose values are sizes of other tensors.
    """

    plan: bytes
    network: Mapping[str, int] = field(default_factory=dict)
    products: Mapping[str, str] = field(default_factory=dict)
    timing_cache: bytes | None = None
    shape_tensors: Sequence[str] = ()


def build(order: Order) -> Built:
    """Build an engine with TensorRT or TensorRT-RTX, whichever `api.use` chose.

    Raises StepError with cause and hint where the build of the engine fails.
    """
    logger, log = trt_log.begin()
    if not order.sms:
        plugin_libraries.register_own(logger)
    builder = trt.Builder(logger)
    with _plugins(builder, log, order.plugins):
        network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
        _parse(network, logger, log, order.folder / order.graph.model)
        config = builder.create_builder_config()
        with _accepted(log, "an option of this build"):
            trt_options.apply(order.options, config)
        if order.plugins and order.options.version_compatible:  # only such an engine can hold its plugins
            config.plugins_to_serialize = [str(path) for path in order.plugins]
        _aim(config, order.sms)
        sizes = layer_types.shape_tensors(network)
        _add_profiles(builder, config, log, order.graph.profiles, _values(order.graph.values, sizes))
        cache = _timing_cache(config, order.timing_cache)
        monitor = trt_log.monitor(trt_log.Progress())
        config.progress_monitor = monitor
        plan = builder.build_serialized_network(network, config)
        if plan is None:
            raise trt_failures.unbuilt(log.problems, _circumstances(order, network))
        return Built(
            bytes(plan),
            layer_types.of_network(network),
            layer_types.products(network) if order.sms else {},
            None if cache is None else bytes(cache.serialize()),
            sizes,
        )


def _parse(network: tensorrt.INetworkDefinition, logger: tensorrt.ILogger, log: Log, model: Path) -> None:
    parser = trt.OnnxParser(network, logger)
    if parser.parse_from_file(str(model)):
        return
    errors = [parser.get_error(number) for number in range(parser.num_errors)]
    raise trt_failures.unreadable(((e.node_operator(), e.node_name(), e.desc()) for e in errors), log.problems)


def _aim(config: tensorrt.IBuilderConfig, sms: tuple[int, ...]) -> None:
    """Set the compute capabilities of a TensorRT-RTX engine.

    Raises StepError for a compute capability that TensorRT-RTX lacks.
    """
    if not sms:
        return
    rtx: Any = config
    rtx_module: Any = trt
    members = rtx_module.ComputeCapability.__members__
    lacking = [sm for sm in sms if f"SM{sm}" not in members]
    if lacking:
        supported = ", ".join(
            sorted((name for name in members if name.startswith("SM")), key=lambda name: int(name[2:]))
        )
        raise StepError(
            f"TensorRT-RTX has no kernels for {', '.join(f'SM{sm}' for sm in lacking)}",
            [f"it builds for {supported}"],
            "use runtime: tensorrt for that GPU",
        )
    rtx.num_compute_capabilities = len(sms)
    for index, sm in enumerate(sms):
        rtx.set_compute_capability(members[f"SM{sm}"], index)


def _values(stated: Sequence[Mapping[str, Extents]], sizes: Sequence[str]) -> list[dict[str, Extents]]:
    """Return the values of shape tensors alone: TensorRT forbids values of other inputs (`set_shape_input`)."""
    others = dict.fromkeys(name for values in stated for name in values if name not in sizes)
    if others:
        print(f"no sizes of other tensors, so that TensorRT needs no values in its profiles: {', '.join(others)}")
    return [{name: each for name, each in values.items() if name in sizes} for values in stated]


def _add_profiles(
    builder: tensorrt.Builder,
    config: tensorrt.IBuilderConfig,
    log: Log,
    profiles: Sequence[Mapping[str, Extents]],
    stated: Sequence[Mapping[str, Extents]],
) -> None:
    for number, (inputs, values) in enumerate(zip(profiles, stated or repeat({}), strict=False)):
        if not inputs and not values:
            continue
        profile = builder.create_optimization_profile()
        for name, each in inputs.items():
            profile.set_shape(name, trt.Dims([*each.min]), trt.Dims([*each.opt]), trt.Dims([*each.max]))
        for name, each in values.items():
            profile.set_shape_input(name, [*each.min], [*each.opt], [*each.max])
        if config.add_optimization_profile(profile) < 0:
            raise trt_failures.refused(f"profile {number}: {in_words(inputs)}", log.problems)


def _timing_cache(config: tensorrt.IBuilderConfig, stored: bytes | None) -> tensorrt.ITimingCache | None:
    """Give TensorRT's builder the stored timing cache.

    A stored timing cache of another GPU or TensorRT version is replaced by a new timing cache.
    """
    if stored is None:
        return None
    for content in dict.fromkeys((stored, b"")):
        cache = config.create_timing_cache(content)
        if cache is not None and config.set_timing_cache(cache, ignore_mismatch=False):
            return cache
        print("the timing cache does not fit this GPU and version: begun anew")
    return None


def _circumstances(order: Order, network: tensorrt.INetworkDefinition) -> trt_failures.Circumstances:
    lines = [f"profile {number}: {in_words(inputs)}" for number, inputs in enumerate(order.graph.profiles) if inputs]
    return trt_failures.Circumstances(
        order.graph.forecast, layer_types.products_in_fp32(network), lines, layer_types.shape_tensors(network)
    )


@contextlib.contextmanager
def _accepted(log: Log, what: str) -> Iterator[None]:
    """Context manager: raise StepError where TensorRT logged an error in the `with` block.

    For a bad option TensorRT only logs an error, and then goes on.
    """
    before = len(log.problems)
    yield
    if len(log.problems) > before:
        raise trt_failures.refused(what, log.problems[before:], "see the section `tensorrt` of the recipe")


@contextlib.contextmanager
def _plugins(builder: tensorrt.Builder, log: Log, paths: Sequence[Path]) -> Iterator[None]:
    """Context manager: libraries of plugins are loaded for the `with` block, and unloaded at its end."""
    registry = builder.get_plugin_registry()
    with contextlib.ExitStack() as loaded:
        for path in paths:
            handle = registry.load_library(str(path))
            if handle is None:
                raise plugin_libraries.unloadable(path, log)
            loaded.callback(registry.deregister_library, handle)
        yield
