"""Entry: a model as clients see it, from its own configuration, and which of a server's models is meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine import tasks
from engine.errors import StepError, UsageError
from engine.text import suggestions

TEXT, IMAGE = "TEXT", "IMAGE"
MAX_NEW_TOKENS, STOP = "MAX_NEW_TOKENS", "STOP"
TASK = "recipe_task"
"""The parameter of a configuration that marks what clients call, and says its task."""
MASK = "recipe_mask"
"""The parameter that says how a word to be filled in is written."""


@dataclass(frozen=True)
class Tensor:
    """One input or output: its datatype in the protocol's words (FP32, BYTES), and its whole shape, -1 for free."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    optional: bool = False

    def __str__(self) -> str:
        extents = " x ".join("any" if size < 0 else str(size) for size in self.shape)
        return f"{self.name}: {self.datatype} [{extents}]"


@dataclass(frozen=True)
class Entry:
    """A model that can be asked: what it takes and gives, and the models that an ensemble consists of."""

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    task: str | None = None
    largest: int = 0
    """The most rows of a request; 0 where Triton does not count them."""
    decoupled: bool = False
    """Whether it answers in pieces, over a stream only."""
    ensemble: bool = False
    parts: tuple[str, ...] = ()
    mask: str | None = None
    """How a word to be filled in is written, where it fills in words."""

    @classmethod
    def of_config(cls, config: Mapping[str, Any]) -> Entry:
        """Return the entry of a ModelConfig, as JSON has it."""
        rows = int(config.get("max_batch_size") or 0)
        policy = config.get("model_transaction_policy") or {}
        parameters = config.get("parameters") or {}
        steps = (config.get("ensemble_scheduling") or {}).get("step") or ()
        return cls(
            name=config["name"],
            inputs=tuple(_of_config(tensor, rows=rows) for tensor in config.get("input") or ()),
            outputs=tuple(_of_config(tensor, rows=rows) for tensor in config.get("output") or ()),
            task=(parameters.get(TASK) or {}).get("string_value"),
            largest=rows,
            decoupled=bool(policy.get("decoupled")),
            ensemble=bool(steps),
            parts=tuple(dict.fromkeys(step["model_name"] for step in steps)),
            mask=(parameters.get(MASK) or {}).get("string_value"),
        )

    @classmethod
    def of_metadata(cls, metadata: Mapping[str, Any]) -> Entry:
        """Return the entry of a server that tells no configuration: the metadata of the KServe v2 protocol."""
        return cls(
            name=metadata["name"],
            inputs=tuple(_of_metadata(tensor) for tensor in metadata.get("inputs") or ()),
            outputs=tuple(_of_metadata(tensor) for tensor in metadata.get("outputs") or ()),
        )

    def input(self, name: str) -> Tensor | None:
        """Return the input of this name, None where the model has none."""
        return next((tensor for tensor in self.inputs if tensor.name == name), None)

    @property
    def generates(self) -> bool:
        """Whether its answer is generated token by token."""
        return tasks.generates(self.task)

    def __str__(self) -> str:
        pieces = ", streams" if self.decoupled else ""
        return f"{self.name} ({self.task or 'tensors'}{pieces})"


def callable_ones(models: Sequence[Entry]) -> list[Entry]:
    """Return what clients call: models that say their task, else ensembles and models that take texts, else all."""
    inner = {part for model in models for part in model.parts}
    said = [model for model in models if model.task]
    likely = [model for model in models if model.ensemble or (model.input(TEXT) and model.name not in inner)]
    return said or likely or list(models)


def choose(models: Sequence[Entry], name: str | None, *, stream: bool) -> Entry:
    """Return the model that is meant: by its name, else the only one that clients call.

    Of two that differ only in whether they stream, `stream` chooses. Raises UsageError where several are left.
    """
    if name is not None:
        return _named(models, name)
    entries = callable_ones(models)
    if not entries:
        raise StepError("the server has no model that is ready", hint="look at its log")
    kinds = [entry for entry in entries if entry.decoupled == stream]
    left = kinds if len({_stem(entry) for entry in kinds}) == len({_stem(entry) for entry in entries}) else entries
    if len(left) == 1:
        return left[0]
    raise UsageError(
        f"the server has {len(left)} models that can be asked: which one?",
        [str(entry) for entry in left],
        "choose one with --model NAME",
    )


def sibling(models: Iterable[Entry], entry: Entry, *, stream: bool) -> Entry | None:
    """Return the model that gives the same answers in pieces, or as a whole; None where there is none."""
    return next((each for each in models if each.decoupled == stream and each.task == entry.task
                 and _stem(each) == _stem(entry)), None)  # fmt: skip


def _named(models: Sequence[Entry], name: str) -> Entry:
    found = next((model for model in models if model.name == name), None)
    if found is not None:
        return found
    near = suggestions.nearest(name, [model.name for model in models])
    raise UsageError(
        f"the server has no model {name!r}",
        [f"it has: {', '.join(sorted(model.name for model in models)) or 'none'}"],
        suggestions.did_you_mean(*near) if near else "",
    )


def _stem(entry: Entry) -> str:
    return entry.name.removesuffix("_stream").removesuffix("_text") if entry.generates else entry.name


def _of_config(tensor: Mapping[str, Any], *, rows: int) -> Tensor:
    kind = str(tensor["data_type"]).removeprefix("TYPE_")
    extents = [int(size) for size in tensor.get("dims") or ()]
    shape = (-1, *extents) if rows else tuple(extents)
    return Tensor(tensor["name"], "BYTES" if kind == "STRING" else kind, shape, bool(tensor.get("optional")))


def _of_metadata(tensor: Mapping[str, Any]) -> Tensor:
    return Tensor(tensor["name"], str(tensor["datatype"]), tuple(int(size) for size in tensor["shape"]))
