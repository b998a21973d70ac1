"""What a recipe may say: frozen models of every field, with their bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Precision = Literal["fp32", "fp16", "bf16", "int8", "fp8", "int4"]
Runtime = Literal["onnxruntime", "tensorrt", "tensorrt-rtx", "openvino", "auto"]
Task = Literal[
    "text-classification",
    "token-classification",
    "question-answering",
    "feature-extraction",
    "fill-mask",
    "text2text-generation",
    "text-generation",
    "image-classification",
]
Size = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
"""One extent of an axis, or a count: from 1 to a million."""


class Model(BaseModel):
    """Every part of a recipe: immutable, and no field but the declared ones."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Range(Model):
    """The extents that an axis may take, as TensorRT's profiles mean it: min <= opt <= max."""

    min: Size
    opt: Size
    max: Size


Profile = Mapping[str, Range]
"""Axis name (`batch`, `sequence`, or what the model calls it) -> the extents it may take."""


class ModelSection(Model):
    """Where the model comes from and what it is for."""

    source: str
    revision: str | None = None
    task: Task | None = None
    tokenizer: str | None = None
    weights: Literal["safetensors", "pickle-tensors-only"] = "safetensors"
    num_labels: Size | None = None
    random_head: bool = False
    trust_remote_code: bool = False


class Target(Model):
    """What the package is for."""

    device: str = "cpu"
    runtime: Runtime = "onnxruntime"
    provider: Literal["cpu", "cuda", "tensorrt"] | None = None
    isa: Literal["avx2", "avx512", "avx512_vnni", "avx_vnni", "amx", "neon"] | None = None


class Bound(Model):
    """A limit on a measured number; either side may be open."""

    at_least: float | None = None
    at_most: float | None = None


class Metric(Bound):
    """A task metric on labelled samples."""

    name: Literal["accuracy"]


class Validation(Model):
    """How the built model is held against the original."""

    samples: str | None = None
    cosine: Bound | None = None
    agreement: Bound | None = None
    max_abs: Bound | None = None
    metric: Metric | None = None


class Calibration(Model):
    """Samples that a quantiser may look at."""

    samples: str
    limit: Size = 256


class Rival(Model):
    """What a user would otherwise run; measured in the same run."""

    runtime: Literal["pytorch", "onnxruntime"]
    precision: Literal["fp32", "fp16", "bf16", "int8"] = "fp32"


class Shape(Model):
    """One shape to measure: an extent per axis, and perhaps a budget in milliseconds.

    In YAML the axes stand beside `budget`: `{batch: 1, sequence: 16, budget: {p95_ms: 1.7}}`.
    """

    axes: Mapping[str, Size]
    budget: Mapping[Literal["mean_ms", "p50_ms", "p95_ms", "p99_ms"], float] = {}


class Bench(Model):
    """What is measured, and against what."""

    shapes: tuple[Shape, ...] = ()
    via: tuple[Literal["in-process", "triton-grpc", "triton-http"], ...] = ("in-process",)
    against: tuple[Rival, ...] = ()
    threads: Annotated[int, Field(strict=True, ge=1, le=1024)] | None = None


class Triton(Model):
    """The Triton model repository; fields that are not named here are ModelConfig's own, verbatim."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str | None = None
    ensemble: str | None = None
    tokenizer: bool = True
    image: str | None = None
    max_batch_size: Annotated[int, Field(strict=True, ge=0, le=65536)] | None = None


class Package(Model):
    """What is handed over."""

    triton: Triton = Triton()


class Recipe(Model):
    """One variant of a recipe, complete: `extends`, `matrix` and `--set` are already applied."""

    name: str
    model: ModelSection
    target: Target = Target()
    precision: Precision = "fp32"
    profiles: tuple[Profile, ...] = ()
    tensorrt: Mapping[str, Any] = {}
    calibrate: Calibration | None = None
    validation: Annotated[Validation, Field(alias="validate")] = Validation()
    bench: Bench | None = None
    package: Package = Package()
    graphs: Mapping[str, Any] = {}
    generate: Mapping[str, Any] = {}
    preprocess: Mapping[str, Any] = {}
    steps: Mapping[str, Mapping[str, Any]] = {}
