"""Options of the tools behind a recipe, under the tools' own names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from engine.recipe.fields import Flag, Memory, Number, Size, Small, Text, Word


class TensorRT(TypedDict, total=False):
    """Options of a TensorRT build, under the builder's own names; only what the recipe says is there.

    Source: `IBuilderConfig`, `MemoryPoolType` and `HardwareCompatibilityLevel` of NVIDIA's TensorRT API.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    version: Word
    memory_pool: Mapping[
        Literal[
            "workspace",
            "dla_managed_sram",
            "dla_local_dram",
            "dla_global_dram",
            "tactic_dram",
            "tactic_shared_memory",
        ],
        Memory,
    ]
    optimization_level: Annotated[int, Field(strict=True, ge=0, le=5)]
    compatibility: Literal["none", "same-compute-capability", "ampere-plus", "version-compatible"]
    cuda_graph: Flag
    tiling_optimization_level: Literal["none", "fast", "moderate", "full"]
    profiling_verbosity: Literal["layer_names_only", "detailed", "none"]
    max_aux_streams: Small
    avg_timing_iterations: Annotated[int, Field(strict=True, ge=1, le=1024)]
    timing_cache: Text
    refit: Flag
    strip_plan: Flag
    weight_streaming: Flag
    sparse_weights: Flag


class Generate(TypedDict, total=False):
    """How text is generated."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    max_new_tokens: Size
    num_beams: Annotated[int, Field(strict=True, ge=1, le=1024)]


_Channels = Annotated[tuple[Number, ...], Field(min_length=1, max_length=16)]


class Preprocess(TypedDict, total=False):
    """How an image becomes a tensor."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    layout: Literal["NHWC", "NCHW"]
    size: Annotated[int, Field(strict=True, ge=1, le=65536)]
    mean: _Channels
    std: _Channels


MODEL_CONFIG = (
    *("name", "platform", "backend", "runtime", "version_policy", "max_batch_size", "input", "output"),
    *("batch_input", "batch_output", "optimization", "dynamic_batching", "sequence_batching"),
    *("ensemble_scheduling", "instance_group", "default_model_filename", "cc_model_filenames", "metric_tags"),
    *("parameters", "model_warmup", "model_operations", "model_transaction_policy", "model_repository_agents"),
    *("response_cache", "model_metrics"),
)
"""The fields of Triton's ModelConfig message (model_config.proto), which `package.triton` takes verbatim."""
