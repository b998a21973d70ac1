"""A fault of an override, and what is known of the model that it is about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.runtimes.backends import Accelerator, Backend
from engine.text import suggestions

Path = tuple[str | int, ...]
FREE = -1
"""A dimension of any size, as config.pbtxt writes it."""


class Fault(Exception):  # noqa: N818 - it becomes an error of the recipe or of the step
    """What Triton would refuse, or take and not do.

    `path` leads from the model's overrides to the value; `at_key` tells that the name there is wrong, not its value.
    """

    def __init__(
        self, what: str, path: Iterable[str | int], hint: str = "", *, facts: Sequence[str] = (), at_key: bool = False
    ) -> None:
        super().__init__(what)
        self.what, self.path, self.hint = what, tuple(path), hint
        self.facts, self.at_key = tuple(facts), at_key


@dataclass(frozen=True)
class ConfigTensor:
    """A tensor as config.pbtxt has it; None for what is not known. `dims` are without the batch that Triton makes."""

    data_type: str | None = None
    dims: tuple[int, ...] | None = None
    """As the model takes it."""
    sent: tuple[int, ...] | None = None
    """As clients send it, where that is reshaped."""
    optional: bool = False
    axes: tuple[str | None, ...] = ()
    """The model's name of each of `dims` that may have any size; empty where the names are not known."""

    def takes(self, dims: Sequence[int]) -> bool:
        """Tell whether `dims` fit the model's own: each size is equal to the model's, or the model's is free."""
        if self.dims is None:
            return True
        return len(dims) == len(self.dims) and all(
            own in (FREE, size) for size, own in zip(dims, self.dims, strict=True)
        )


@dataclass(frozen=True)
class About:
    """What is known of the model that overrides are about; None for what only its files will tell."""

    backend: Backend
    part: str = "model"
    """`model`, or one of the parts that `package.triton.models` names."""
    name: str | None = None
    on_gpu: bool = False
    """The package is for a GPU."""
    accelerator: Accelerator | None = None
    """What ONNX Runtime hands the model to, where it was validated so."""
    batch: int | None = None
    """Its max_batch_size."""
    most: int | None = None
    """The most that max_batch_size can be: what the profiles allow."""
    profiles: int | None = None
    """How many profiles the TensorRT engine has."""
    decoupled: bool = False
    inputs: Mapping[str, ConfigTensor] | None = None
    outputs: Mapping[str, ConfigTensor] | None = None
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The least and the most that the profiles take, by axis."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Parameters by which the package finds its own way."""

    @property
    def largest(self) -> int | None:
        """The largest batch that can ever be sent."""
        return self.batch if self.batch is not None else self.most

    @property
    def batch_limit(self) -> str:
        """The largest batch in words, with the setting that it comes from."""
        source = "max_batch_size" if self.batch is not None else "the largest of the profiles"
        return f"{source} is {self.largest}"


Said = Mapping[str, Any]
"""Overrides of one model whose types are right, without nulls."""
Rule = Callable[[Said, About], Iterator[Fault]]


def listed(tensors: Iterable[str]) -> str:
    """Return a fact for an error: the names of the model's tensors."""
    return f"it has: {', '.join(tensors)}"


def unknown_tensor(kind: str, name: str, path: Path, tensors: Iterable[str], *, at_key: bool = False) -> Fault:
    """Return the fault of a name that no input or output (`kind`) of the model has."""
    what = f"the model has no {kind} {name!r}"
    return Fault(what, path, suggestions.hint(name, tensors), facts=[listed(tensors)], at_key=at_key)


def not_of_an_ensemble(field: str, why: str = "Triton refuses it") -> Fault:
    """Return the fault of a field that an ensemble cannot have."""
    what = f"an ensemble has no `{field}`: {why}"
    return Fault(what, (field,), "say it of the models that it is made of", at_key=True)


def twice(names: Iterable[Any]) -> Iterator[int]:
    """Yield the index of each item that was there before."""
    seen: set[Any] = set()
    for index, name in enumerate(names):
        if name in seen:
            yield index
        seen.add(name)
