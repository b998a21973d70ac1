"""The schema of a recipe: a frozen pydantic model for each section, with the limits of each field."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema
from typing_extensions import TypedDict

from engine import tasks
from engine.recipe import image_input
from engine.recipe.fields import (
    Distinct,
    Flag,
    Milliseconds,
    Name,
    OneOf,
    Size,
    Text,
    Word,
    as_list,
    axes_of_profile,
    by_axis_and_budget,
    no_values,
    once_each,
    text_axes,
    unknown,
    wrong,
)
from engine.recipe.image_input import Images
from engine.recipe.licenses import License
from engine.recipe.model_config import MODEL_CONFIG, PartName
from engine.recipe.postprocessing import Postprocess
from engine.recipe.sections import (
    BuiltOnUse,
    Calibration,
    Generate,
    Preprocess,
    Quantization,
    TensorRTOptions,
    Validation,
)
from engine.recipe.shape_values import ShapeValues
from engine.recipe.tune import Tune
from engine.recipe.values import Precision, Profile, RecipePart, Rival
from engine.runtimes import registry
from engine.runtimes.preparation import Lowering

if TYPE_CHECKING:
    from engine.runtimes.runtime import Runtime

_Stated = Annotated[Profile, BeforeValidator(axes_of_profile), Field(json_schema_extra={"minProperties": 1})]
Profiles = Annotated[tuple[_Stated, ...], Field(max_length=64), BeforeValidator(as_list)]


TIMM_PREFIXES = ("timm:", "hf:timm/")
"""How a source begins that names one of timm's repositories on the hub."""


class ModelSection(RecipePart):
    """The model: its source, its task, and options for loading its files."""

    source: Text
    revision: Word | None = None
    task: Annotated[str, OneOf(tasks.names)] | None = None
    library: Literal["transformers", "timm"] = "transformers"
    """The library that loads the checkpoint; the models of timm's own repositories need no word of it."""
    tokenizer: Text | None = None
    weights: Literal["safetensors", "pickle-tensors-only"] = "safetensors"
    num_labels: Size | None = None
    random_head: Flag = False
    prompt: Text | None = None
    """The name of the prompt of a sentence-transformers model that is put in front of each text."""
    truncate_dim: Size | None = None
    """How many numbers of a sentence embedding are kept."""
    labels: Annotated[tuple[Text, ...], Field(max_length=65536)] = ()
    """The names of the classes of an ONNX file; for a zero-shot classifier, the texts that it chooses from."""
    trust_remote_code: Flag = False

    @property
    def is_onnx_file(self) -> bool:
        """Whether the source is a path of an ONNX file."""
        return self.source.lower().endswith(".onnx")

    @property
    def loader(self) -> Literal["transformers", "timm"] | None:
        """The library that loads the checkpoint; None for an ONNX file.

        The recipe says it, because the key of a job needs the library's version before the job reads the checkpoint.
        """
        if self.is_onnx_file:
            return None
        return "timm" if self.source.lower().startswith(TIMM_PREFIXES) else self.library

    @property
    def takes_images(self) -> bool:
        """Whether the model is a checkpoint that takes images: one of timm, or one for such a task."""
        if self.is_onnx_file:
            return False
        return self.loader == "timm" or (self.task is not None and tasks.find(self.task).takes_images)


def _one_or_several(value: Any) -> str:
    """Return "several" for a list of devices, else "one": pydantic validates `device` as the returned form only."""
    return "several" if isinstance(value, list | tuple) else "one"


_OneDevice = Annotated[Text, Tag("one")]
_Devices = Annotated[tuple[Text, ...], Field(min_length=1, max_length=16), Distinct, Tag("several")]


class TargetSection(RecipePart):
    """The hardware and software that the package is for: device, runtime, execution provider, CPU instruction set."""

    device: Annotated[_OneDevice | _Devices, Discriminator(_one_or_several)] = "cpu"
    """The name of one device, or the names of several devices that share one TensorRT-RTX engine."""
    runtime: Annotated[str, OneOf(registry.targets)] = "onnxruntime"
    provider: Annotated[str, OneOf(registry.providers)] | None = None
    isa: Literal["avx2", "avx512", "avx512_vnni", "avx_vnni", "amx", "neon"] | None = None

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of all devices that the package is for."""
        return (self.device,) if isinstance(self.device, str) else self.device


class RivalSection(Rival):
    """A rival of a recipe: its runtime is one that can be a rival."""

    runtime: Annotated[str, OneOf(registry.rivals)]


class Shape(RecipePart):
    """One input shape to measure: the size of each axis and, optionally, a budget of latencies in milliseconds.

    In YAML the axes and `budget` are keys of one mapping: `{batch: 1, sequence: 16, budget: {p95_ms: 1.7}}`. The size
    `samples` of an axis stands for the lengths of the samples: `{batch: 8, sequence: samples}`.
    """

    axes: Annotated[Mapping[Text, Size], Field(max_length=256)]
    samples: Text | None = None
    """The name of the axis whose sizes are the lengths of the samples; None where all sizes are numbers."""
    budget: Mapping[Literal["mean_ms", "p50_ms", "p95_ms", "p99_ms"], Milliseconds] = {}

    @model_validator(mode="before")
    @classmethod
    def _axes_beside_budget(cls, value: Any) -> Any:
        if not isinstance(value, Mapping) or isinstance(value.get("axes"), Mapping):
            return value
        return by_axis_and_budget(value)


class BenchSection(RecipePart):
    """The latencies to measure: the input shapes, the ways to call the model, and the rivals to compare with."""

    shapes: Annotated[tuple[Shape, ...], Field(max_length=256), BeforeValidator(as_list), Distinct] = ()
    samples: Text | None = None
    """The file of samples whose lengths a shape such as `sequence: samples` means; None for `validate.samples`."""
    via: Annotated[
        tuple[Literal["in-process", "triton-grpc", "triton-http"], ...], Field(min_length=1, max_length=3), Distinct
    ] = ("in-process",)
    against: Annotated[tuple[RivalSection, ...], Field(max_length=16), BeforeValidator(as_list), Distinct] = ()
    threads: Annotated[int, Field(strict=True, ge=1, le=1024)] | None = None


class GraphSection(TypedDict, total=False):
    """The precision and the profiles of one graph, for a model that is exported as several graphs."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    precision: Precision
    profiles: Annotated[Profiles, BeforeValidator(no_values), Distinct]


class Triton(RecipePart):
    """Settings of the Triton model repository. Fields of Triton's ModelConfig may be added under their own names."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: Name | None = None
    ensemble: Name | None = None
    tokenizer: Flag = True
    postprocess: Flag = True
    image: Word | None = None
    max_batch_size: Annotated[int, Field(strict=True, ge=0, le=65536)] | None = None
    max_text_bytes: Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)] | None = None
    """The most bytes of UTF-8 in one text of a request; None for a limit by the tokens that the model can take."""
    threads: Annotated[int, Field(strict=True, ge=1, le=1024)] | None = None
    """The threads with which one instance of a model on a CPU computes; None for the default of Triton's backend."""
    layout: Literal["ensemble", "fused", "auto"] = "ensemble"
    """Whether tokenizer, model and answers are models of their own behind an ensemble, or one Python model; `auto`
    stands for the faster of the two, by a measurement.
    """
    padding: Literal["none", "buckets", "auto"] = "none"
    """Whether texts are padded to the sizes in the profiles, so that Triton joins texts of different lengths; `auto`
    stands for the faster of the two under load, by a measurement.
    """
    models: Annotated[Mapping[PartName, Mapping[str, Any]], Field(max_length=16)] = {}
    """Fields of ModelConfig for the package's further models, such as `tokenizer`, by the name of the model. Fields of
    ModelConfig for the main model are written directly in `package.triton`.
    """

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        for name in self.model_extra or {}:
            if name not in MODEL_CONFIG:
                raise unknown(name)
        return self

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        if self.name is not None and self.name == self.ensemble:
            raise wrong(f"calls the model and the ensemble {self.name!r}", "they need two names")
        return self


class AnswersSection(RecipePart):
    """How a package makes answers of a model's outputs; the names are those of transformers' pipelines."""

    aggregation_strategy: Literal["simple", "first", "average", "max"] | None = None
    """How tokens become entities, for token-classification; None for labels of tokens alone."""
    align_to_words: Flag = False
    """Whether an answer to a question is widened to whole words."""
    doc_stride: Annotated[int, Field(strict=True, ge=1, le=65536)] | None = None
    """How many tokens the windows of a long context share; None for one window, so that the rest is cut off."""
    handle_impossible_answer: Flag = False
    """Whether "no answer" (SQuAD 2) is an answer to a question."""
    max_answer_len: Annotated[int, Field(strict=True, ge=1, le=4096)] = 15
    """The most tokens of an answer to a question."""
    threshold: Annotated[float, Field(ge=0, lt=1)] = 0.5
    """The score that an object in an image has to exceed."""


class PackageSection(RecipePart):
    """The package that the build writes: the settings of its Triton model repository, and of its answers."""

    triton: Annotated[Triton, BuiltOnUse()] = Triton.model_construct()
    answers: Annotated[AnswersSection, BuiltOnUse()] = AnswersSection.model_construct()


class PolicySection(RecipePart):
    """What may be packaged at all."""

    licenses: Annotated[tuple[License, ...], Field(min_length=1, max_length=256), Distinct] | None = None
    """The SPDX ids of the licences that model and tokenizer may have; None for any licence, even one not known."""


class Recipe(RecipePart):
    """One variant of a recipe, complete: `extends`, `matrix` and `--set` are already applied.

    The defaults of sections are made by `model_construct`, which needs no validator (`BuiltOnUse`).
    """

    name: Name
    model: ModelSection
    target: TargetSection = TargetSection.model_construct()
    precision: Precision = "fp32"
    tf32: Flag | None = None
    """Whether a GPU may compute the products of fp32 in TF32; None for the default of each runtime."""
    shape_values: SkipJsonSchema[Annotated[ShapeValues, Field(validation_alias="profiles")]] = ()
    """The values of inputs that the profiles state, in the order of the profiles; a second reading of `profiles`."""
    profiles: Profiles = ()
    tensorrt: TensorRTOptions = {}
    calibrate: Annotated[Calibration, BuiltOnUse()] | None = None
    validation: Annotated[Validation, BuiltOnUse(), Field(alias="validate")] = Validation.model_construct()
    bench: Annotated[BenchSection, BuiltOnUse()] | None = None
    package: Annotated[PackageSection, BuiltOnUse()] = PackageSection.model_construct()
    graphs: Annotated[Mapping[Name, Annotated[GraphSection, BuiltOnUse()]], Field(max_length=16)] = {}
    quantize: Annotated[Quantization, BuiltOnUse()] = {}
    generate: Annotated[Generate, BuiltOnUse()] = {}
    preprocess: Annotated[Preprocess, BuiltOnUse()] = {}
    postprocess: Postprocess | None = None
    policy: Annotated[PolicySection, BuiltOnUse()] = PolicySection.model_construct()
    hermetic: Flag = False
    """Whether a job fails that reads anything which no row of its key covers."""
    runtimes: Annotated[Mapping[Name, Mapping[str, Any]], Field(max_length=16)] = {}
    """Options of runtimes from other Python packages, by the name of the runtime. A runtime of another
    package validates its options with a pydantic model of its own.
    """
    steps: Annotated[Mapping[Name, Mapping[str, Any]], Field(max_length=256)] = {}
    tune: Annotated[Annotated[Tune, BuiltOnUse()] | None, Field(exclude=True)] = None
    """What `recipe tune` searches for. It is excluded from what notes, locks and keys hold of a recipe."""

    @property
    def runtime(self) -> "Runtime":
        """The runtime that `target.runtime` names."""
        return registry.of(self)

    @property
    def falls_back(self) -> bool:
        """Whether a model stays in fp32 where int8 misses the default bounds: one of images, on a CPU.

        A recipe that sets a bound, or says how to quantize, is obeyed: where int8 misses the bound, the build fails.
        """
        bounds = ("cosine", "agreement", "max_abs", "variation", "rank", "precision_share", "metric")
        own = bool(self.quantize) or any(getattr(self.validation, name) is not None for name in bounds)
        return self.images is not None and not own and self.runtime.lowering(self) is Lowering.DYNAMIC

    @property
    def images(self) -> Images | None:
        """The input of the recipe's image model; None for a model that takes no images, as far as the recipe says."""
        if not self.model.takes_images and not (self.model.is_onnx_file and self.preprocess):
            return None
        return image_input.of(self.preprocess, self.model.loader)

    @property
    def bench_samples(self) -> str | None:
        """The samples whose lengths `bench` measures; None where no shape of `bench` stands for lengths of samples."""
        if self.bench is None or all(shape.samples is None for shape in self.bench.shapes):
            return None
        return self.bench.samples or self.validation.samples

    @field_validator("profiles")
    @classmethod
    def _with_text_axes(cls, profiles: Profiles, info: ValidationInfo) -> Profiles:
        model, values = info.data.get("model"), info.data.get("shape_values") or [None] * len(profiles)
        once_each(tuple(zip(profiles, values, strict=True)))
        return profiles if model is None or model.is_onnx_file else tuple(map(text_axes, profiles))

    def as_run_by(self, runtime: str) -> Self:
        """Return the recipe as if it named another runtime; `tensorrt` goes to the runtimes that read it."""
        by = registry.find(runtime)
        named = {"runtime": runtime, "provider": by.default_provider(self.target)}
        target = self.target.model_copy(update=named)
        read = "tensorrt" in by.sections(target)
        return self.model_copy(update={"target": target, **({} if read else {"tensorrt": {}})})
