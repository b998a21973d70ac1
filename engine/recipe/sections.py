"""Sections of a recipe that stand alone: `tensorrt`, `quantize`, `calibrate`, `generate`, `preprocess`, `validate`."""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Tag,
    TypeAdapter,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema
from typing_extensions import TypedDict

from engine.recipe.fields import (
    LARGEST_SIZE,
    Distinct,
    Flag,
    Memory,
    Number,
    Size,
    Small,
    Text,
    Word,
    limits_within,
    one_sided,
    wrong,
)
from engine.recipe.values import Bound, Metric, RecipePart
from engine.runtimes.tensorrt_values import Compatibility, Pool, TilingLevel, Verbosity


class BuiltOnUse:
    """Marks the type of a section in `Annotated`: the section is validated as without the mark, and so are its errors.

    Pydantic builds the validator of a model with the validators of all its sections. That takes longer than the
    validation of many recipes, and most recipes have few of the sections. The mark is the first of an `Annotated`: it
    replaces the validators before it, and those behind it stay.
    """

    _type: Any = None

    def __get_pydantic_core_schema__(self, source: Any, _handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        self._type = source
        return core_schema.no_info_plain_validator_function(self._validated)

    def __get_pydantic_json_schema__(
        self, _schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        # A schema within another becomes a definition of its own, which a schema that is returned would not.
        return handler(core_schema.chain_schema([self._adapter.core_schema]))

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self._type)

    def _validated(self, value: Any) -> Any:
        """Return a section. The errors of pydantic become errors of the recipe, under the place of the section."""
        return self._adapter.validate_python(value)


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


TensorRTOptions = Annotated[TensorRTSection, BuiltOnUse(), BeforeValidator(_levels_apart)]
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


_Pixels = Annotated[int, Field(strict=True, ge=1, le=65536)]


def _form(value: Any) -> str:
    """Return the form of a size: pydantic validates the size as this form only."""
    if not isinstance(value, Mapping):
        return "square"
    return "edges" if "shortest_edge" in value else "sides"


_Square = Annotated[_Pixels, Tag("square")]
_Rectangle = Annotated[Mapping[Literal["height", "width"], _Pixels], Field(min_length=2), Tag("sides")]


def _numbers(value: Any) -> Any:
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else value


_Edges = Annotated[Mapping[Literal["shortest_edge", "longest_edge"], _Pixels], Tag("edges")]
_OfAll = BeforeValidator(_numbers, json_schema_input_type=Number | tuple[Number, ...])
_Each = (Field(min_length=1, max_length=16), _OfAll)


class Preprocess(TypedDict, total=False):
    """How an image file becomes the model's input tensor; each field replaces what the model's own files say."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    layout: Literal["NHWC", "NCHW"]
    size: Annotated[_Square | _Rectangle | _Edges, Discriminator(_form)]
    crop: Annotated[_Square | _Rectangle, Discriminator(_form)]
    fit: Literal["stretch", "crop", "letterbox"]
    resample: Literal["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]
    scale: Annotated[Number, Field(gt=0)]
    mean: Annotated[tuple[Number, ...], *_Each]
    std: Annotated[tuple[Annotated[Number, Field(gt=0)], ...], *_Each]
    channels: Literal["RGB", "BGR", "L"]


_AtLeast = BeforeValidator(one_sided("at_least"))
_AtMost = BeforeValidator(one_sided("at_most"))
_Share = AfterValidator(limits_within(0, 1))


class PerplexityOnText(RecipePart):
    """A text on which the built model's perplexity is measured, over the original's; `limit` counts its tokens."""

    text: Text
    at_most: Annotated[Number, Field(gt=0)] | None = None
    limit: Annotated[int, Field(strict=True, ge=128, le=LARGEST_SIZE)] = 4096

    @property
    def bound(self) -> Bound | None:
        """The bound on the ratio of the perplexities; None where the recipe names none."""
        return None if self.at_most is None else Bound(at_most=self.at_most)


class Validation(RecipePart):
    """Bounds on how closely the built model matches the original model.

    A number alone means `at_least`; for `max_abs`, a number alone means `at_most`.
    """

    samples: Text | None = None
    cosine: Annotated[Bound, _AtLeast, AfterValidator(limits_within(-1, 1))] | None = None
    agreement: Annotated[Bound, _AtLeast, _Share] | None = None
    max_abs: Annotated[Bound, _AtMost, AfterValidator(limits_within(0, 1e12))] | None = None
    variation: Annotated[Bound, _AtLeast, AfterValidator(limits_within(-1e12, 1))] | None = None
    rank: Annotated[Bound, _AtLeast, AfterValidator(limits_within(-1, 1))] | None = None
    in_batch: Annotated[Bound, _AtLeast, AfterValidator(limits_within(-1, 1))] | None = None
    precision_share: Annotated[Bound, _AtLeast, _Share] | None = None
    perplexity: PerplexityOnText | None = None
    metric: Annotated[Metric, _AtLeast, _Share] | None = None


class Calibration(RecipePart):
    """The file of samples from which quantization takes its scales, and the largest number of samples to use."""

    samples: Text
    limit: Size = 256
