"""The sections `tensorrt`, `quantize`, `generate` and `preprocess`, with the names of the tools behind them."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema
from typing_extensions import TypedDict

from engine.recipe.fields import Distinct, Flag, Memory, Number, Size, Small, Text, Word, wrong
from engine.recipe.later import Later
from engine.runtimes.tensorrt_values import Compatibility, Pool, TilingLevel, Verbosity

_VERSIONS = "version-compatible"


class TensorRTSection(TypedDict, total=False):
    """Options of a TensorRT build, all optional, under the names of TensorRT's builder API.

    Source: `IBuilderConfig`, `MemoryPoolType` and `HardwareCompatibilityLevel` of NVIDIA's TensorRT API.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    version: Word
    memory_pool: Mapping[Pool, Memory]
    optimization_level: Annotated[int, Field(strict=True, ge=0, le=5)]
    compatibility: Annotated[
        Compatibility,
        WithJsonSchema({"type": "string", "enum": [*get_args(Compatibility), _VERSIONS]}),
    ]
    version_compatible: Flag
    exclude_lean_runtime: Flag
    cuda_graph: Flag
    tiling_optimization_level: TilingLevel
    profiling_verbosity: Verbosity
    max_aux_streams: Small
    avg_timing_iterations: Annotated[int, Field(strict=True, ge=1, le=1024)]
    timing_cache: Text
    plugins: Annotated[tuple[Text, ...], Field(min_length=1, max_length=64), Distinct]
    """Paths of libraries with TensorRT plugins."""
    refit: Flag
    strip_plan: Flag
    weight_streaming: Flag
    sparse_weights: Flag


def _levels_apart(value: Any) -> Any:
    """Return the options with `version_compatible: true` instead of `compatibility: version-compatible`.

    `compatibility` is TensorRT's level of compatibility with other hardware. Compatibility with other versions of
    TensorRT is the separate flag `version_compatible`.
    """
    if not isinstance(value, Mapping) or value.get("compatibility") != _VERSIONS:
        return value
    if value.get("version_compatible") is False:
        raise wrong("says that it is version-compatible and that it is not", "leave `version_compatible` out")
    return {**{name: option for name, option in value.items() if name != "compatibility"}, "version_compatible": True}


TensorRTOptions = Annotated[TensorRTSection, Later(), BeforeValidator(_levels_apart)]
"""The section `tensorrt` of a recipe, with both ways to write `version_compatible`."""


class Generate(TypedDict, total=False):
    """Options of text generation: the largest number of new tokens, and the number of beams."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    max_new_tokens: Size
    num_beams: Annotated[int, Field(strict=True, ge=1, le=1024)]


_Names = Annotated[tuple[Text, ...], Field(min_length=1, max_length=4096), Distinct]


class KeepIn(TypedDict, total=False):
    """Names of modules and nodes, or patterns of names, by the precision in which they stay."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    fp32: _Names
    fp16: _Names


class Quantization(TypedDict, total=False):
    """How a precision is lowered: `weights_only` leaves activations in floating point, `keep_in` whole layers."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    weights_only: Flag
    keep_in: KeepIn


_Channels = Annotated[tuple[Number, ...], Field(min_length=1, max_length=16)]


class Preprocess(TypedDict, total=False):
    """How an image becomes the model's input tensor: layout, size in pixels, and mean and deviation of each channel."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    layout: Literal["NHWC", "NCHW"]
    size: Annotated[int, Field(strict=True, ge=1, le=65536)]
    mean: _Channels
    std: _Channels
