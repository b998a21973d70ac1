"""Model metadata: a model as clients see it, and the choice of one model among those of a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine import tasks
from engine.errors import StepError, UsageError
from engine.kit.triton.parts import MASK, TASK
from engine.runtimes.triton_tensors import TEXT
from engine.text import suggestions

_READY = "READY"


@dataclass(frozen=True)
class ModelState:
    """The state of a model in the server's repository index: READY, or another state with the server's reason."""

    state: str
    reason: str = ""

    @property
    def ready(self) -> bool:
        """Whether the model is ready to answer requests."""
        return self.state == _READY


@dataclass(frozen=True)
class TensorMetadata:
    """An input or output of a model: its KServe datatype (FP32, BYTES) and its shape, where -1 is any size."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    optional: bool = False

    def __str__(self) -> str:
        sizes = " x ".join("any" if size < 0 else str(size) for size in self.shape)
        return f"{self.name}: {self.datatype} [{sizes}]"


@dataclass(frozen=True)
class ModelMetadata:
    """A model on a server: its inputs, its outputs, its task, and the models that an ensemble runs."""

    name: str
    inputs: tuple[TensorMetadata, ...]
    outputs: tuple[TensorMetadata, ...]
    task: str | None = None
    max_batch_size: int = 0
    """The largest number of rows that one request may have; 0 where the model's configuration has no batch axis."""
    decoupled: bool = False
    """Whether the model answers in pieces, over a stream."""
    ensemble: bool = False
    composing_models: tuple[str, ...] = ()
    """The names of the models that an ensemble runs, in the order in which the ensemble runs them."""
    mask: str | None = None
    """The mask token of the tokenizer, where the model fills masks."""

    @classmethod
    def of_config(cls, config: Mapping[str, Any]) -> ModelMetadata:
        """Return the metadata that a ModelConfig holds; `config` is the ModelConfig as JSON."""
        max_batch_size = int(config.get("max_batch_size") or 0)
        policy = config.get("model_transaction_policy") or {}
        parameters = config.get("parameters") or {}
        steps = (config.get("ensemble_scheduling") or {}).get("step") or ()
        batched = max_batch_size > 0
        return cls(
            name=config["name"],
            inputs=tuple(_of_config(tensor, batched=batched) for tensor in config.get("input") or ()),
            outputs=tuple(_of_config(tensor, batched=batched) for tensor in config.get("output") or ()),
            task=(parameters.get(TASK) or {}).get("string_value"),
            max_batch_size=max_batch_size,
            decoupled=bool(policy.get("decoupled")),
            ensemble=bool(steps),
            composing_models=tuple(dict.fromkeys(step["model_name"] for step in steps)),
            mask=(parameters.get(MASK) or {}).get("string_value"),
        )

    @classmethod
    def of_metadata(cls, metadata: Mapping[str, Any]) -> ModelMetadata:
        """Return metadata from a KServe v2 server without Triton's extensions; `metadata` is the server's JSON."""
        return cls(
            name=metadata["name"],
            inputs=tuple(_of_metadata(tensor) for tensor in metadata.get("inputs") or ()),
            outputs=tuple(_of_metadata(tensor) for tensor in metadata.get("outputs") or ()),
        )

    def input(self, name: str) -> TensorMetadata | None:
        """Return the input `name`; None where the model has no input `name`."""
        return next((tensor for tensor in self.inputs if tensor.name == name), None)

    @property
    def generates(self) -> bool:
        """Whether the model generates text token by token."""
        return tasks.generates(self.task)

    def __str__(self) -> str:
        streams = ", streams" if self.decoupled else ""
        return f"{self.name} ({self.task or 'tensors'}{streams})"


def entries(models: Sequence[ModelMetadata]) -> list[ModelMetadata]:
    """Return the metadata of those of `models` that clients call.

    In a package that recipe built, the models that clients call are marked with a task. On a server without marked
    models, clients call the ensembles, and the models that take texts and belong to no ensemble. On a server without
    ensembles and without models of texts, clients call all models.
    """
    composing = {name for model in models for name in model.composing_models}
    marked = [model for model in models if model.task]
    likely = [model for model in models if model.ensemble or (model.input(TEXT) and model.name not in composing)]
    return marked or likely or list(models)


def choose(models: Sequence[ModelMetadata], name: str | None, *, stream: bool) -> ModelMetadata:
    """Return the model `name`; where `name` is None, the only model that clients call.

    Where two models differ only in whether they stream, `stream` chooses one of the two. Raises UsageError for an
    unknown name and where several models fit, StepError where the server has no model that is ready.
    """
    if name is not None:
        named = next((model for model in models if model.name == name), None)
        if named is not None:
            return named
        near = suggestions.nearest(name, [model.name for model in models])
        raise UsageError(
            f"the server has no model {name!r}",
            [f"it has: {', '.join(sorted(model.name for model in models)) or 'none'}"],
            suggestions.did_you_mean(*near) if near else "",
        )
    called = entries(models)
    if not called:
        raise StepError("the server has no model that is ready", hint="see the server's log")
    fitting = [model for model in called if model.decoupled == stream]
    left = fitting if {_stem(model) for model in fitting} == {_stem(model) for model in called} else called
    if len(left) == 1:
        return left[0]
    raise UsageError(
        f"the server has {len(left)} models that clients call: which one?",
        [str(model) for model in left],
        "choose one with --model NAME",
    )


def sibling(models: Iterable[ModelMetadata], model: ModelMetadata, *, stream: bool) -> ModelMetadata | None:
    """Return the model that answers like `model`, in pieces with `stream`, else whole; None where no model does."""
    return next((other for other in models if other.decoupled == stream and other.task == model.task
                 and _stem(other) == _stem(model)), None)  # fmt: skip


def _stem(model: ModelMetadata) -> str:
    """Return the name that the streaming and the whole-answer model of one package share."""
    return model.name.removesuffix("_stream").removesuffix("_text") if model.generates else model.name


def _of_config(tensor: Mapping[str, Any], *, batched: bool) -> TensorMetadata:
    """Return the metadata of an input or output in a ModelConfig, whose `dims` lack the batch axis if `batched`."""
    datatype = str(tensor["data_type"]).removeprefix("TYPE_")
    dims = tuple(int(size) for size in tensor.get("dims") or ())
    shape = (-1, *dims) if batched else dims
    return TensorMetadata(
        tensor["name"], "BYTES" if datatype == "STRING" else datatype, shape, bool(tensor.get("optional"))
    )


def _of_metadata(tensor: Mapping[str, Any]) -> TensorMetadata:
    return TensorMetadata(tensor["name"], str(tensor["datatype"]), tuple(int(size) for size in tensor["shape"]))
