"""`Fault`, an error in a recipe's overrides of Triton's configuration, and `About`, the overridden model."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.runtimes.backends import Accelerator, Backend
from engine.text import suggestions

Path = tuple[str | int, ...]
"""The names of fields and the indices of list items that lead to a value in the overrides."""
FREE = -1
"""The value by which config.pbtxt means a dimension of any size."""


class Fault(Exception):  # noqa: N818 - a Fault becomes a RecipeError or a StepError
    """An override that Triton refuses, or accepts without doing what the override says.

    `path` leads from the model's overrides to the wrong value. `at_key` is true where the name of the field at the end
    of `path` is wrong, and not the field's value.
    """

    def __init__(
        self, what: str, path: Iterable[str | int], hint: str = "", *, facts: Sequence[str] = (), at_key: bool = False
    ) -> None:
        super().__init__(what)
        self.what, self.path, self.hint = what, tuple(path), hint
        self.facts, self.at_key = tuple(facts), at_key


@dataclass(frozen=True)
class ConfigTensor:
    """An input or output as config.pbtxt has it: `dims` without the batch axis; None for what is not known."""

    data_type: str | None = None
    dims: tuple[int, ...] | None = None
    """The tensor's shape in the model, without the batch axis."""
    sent: tuple[int, ...] | None = None
    """The shape that clients send, where Triton reshapes it to `dims`."""
    optional: bool = False
    axes: tuple[str | None, ...] = ()
    """The model's name of each axis in `dims` that may have any size; empty where the names are not known."""

    def takes(self, dims: Sequence[int]) -> bool:
        """Tell whether the tensor takes the sizes `dims`; an axis of free size takes every size."""
        if self.dims is None:
            return True
        return len(dims) == len(self.dims) and all(
            own in (FREE, size) for size, own in zip(dims, self.dims, strict=True)
        )


@dataclass(frozen=True)
class About:
    """Properties of the model that overrides configure; a field is None where only the model's files tell its value."""

    backend: Backend
    part: str = "model"
    """The part of the package: `model`, or a part that `package.triton.models` names."""
    name: str | None = None
    release: str = ""
    """The release of Triton in the recipe's image, as "24.10"; empty where the recipe does not tell it."""
    on_gpu: bool = False
    """Whether the package is for a GPU."""
    accelerator: Accelerator | None = None
    """The accelerator of ONNX Runtime with which the model is validated; None for no accelerator."""
    batch: int | None = None
    """The model's max_batch_size."""
    most: int | None = None
    """The largest max_batch_size that the profiles allow."""
    profiles: int | None = None
    """The number of profiles of the TensorRT engine; None for a model that is no engine."""
    cuda_graphs: bool = False
    """Whether the package configures CUDA graphs by itself, for `tensorrt.cuda_graph`."""
    decoupled: bool = False
    inputs: Mapping[str, ConfigTensor] | None = None
    outputs: Mapping[str, ConfigTensor] | None = None
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The smallest and the largest size in any profile, by the name of the axis."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Parameters that the package itself needs, because its clients or its models read them."""

    @property
    def largest(self) -> int | None:
        """The largest batch that Triton can send to the model; None where this limit is not known."""
        return self.batch if self.batch is not None else self.most

    @property
    def batch_limit(self) -> str:
        """The setting that limits the batch, and the largest batch, as words for an error: "max_batch_size is 8"."""
        source = "max_batch_size" if self.batch is not None else "the largest of the profiles"
        return f"{source} is {self.largest}"


Overrides = Mapping[str, Any]
"""The overrides of one model, after `typed` has checked their types and removed nulls."""
Rule = Callable[[Overrides, About], Iterator[Fault]]
Tensors = Mapping[str, ConfigTensor] | None
"""The inputs or the outputs of a model by name; None where only the model's files tell them."""


def tensor_names(tensors: Iterable[str]) -> str:
    """Return a line for an error: the names of the model's tensors."""
    return f"it has: {', '.join(tensors)}"


def unknown(kind: str, name: str, path: Path, tensors: Tensors, *, at_key: bool = False) -> Iterator[Fault]:
    """Yield a fault for a name that no input or output (`kind`) of the model has."""
    if tensors is not None and name not in tensors:
        hint, facts = suggestions.hint(name, tensors), [tensor_names(tensors)]
        yield Fault(f"the model has no {kind} {name!r}", path, hint, facts=facts, at_key=at_key)


def missing(tensors: Tensors, names: Container[str], path: Path, what: str) -> Iterator[Fault]:
    """Yield a fault for each tensor that is not in `names`, and that a request may not leave out."""
    hint = f"add it, or leave `{path[-1]}` out" if isinstance(path[-1], str) else "add it"
    for name, tensor in (tensors or {}).items():
        if name not in names and not tensor.optional:
            yield Fault(f"the {what} {name!r} is missing", path, hint, facts=[tensor_names(tensors or ())])
