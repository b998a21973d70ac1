"""Sizes: checks that overrides give free axes a size within the profiles, and one axis the same size everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.feasibility.triton.fault import About, ConfigTensor, Fault, Overrides, Path
from engine.runtimes.triton_tensors import TEXT

Shapes = Sequence[tuple[str, Sequence[int], Path]]
"""The tensors of one request: the name of each, its dims, and the path of the dims in the overrides."""

_OF_TEXTS, _MOST_TEXTS = ("tokenizer", "ensemble"), 2
"""The parts of a package that take texts, and the largest number of texts in a row (a pair)."""


def rule(overrides: Overrides, about: About) -> Iterator[Fault]:
    """Yield a fault for each size that no profile takes, and for each axis that has two sizes in one request."""
    for shapes in _together(overrides):
        yield from _sizes(shapes, about)


def _together(overrides: Overrides) -> Iterator[Shapes]:
    """Yield the tensors of each request that the overrides describe: in `input`, each warm-up and each CUDA graph."""
    inputs = overrides.get("input", ())
    yield [
        (tensor.get("name", ""), _taken(tensor), ("input", index, "reshape" if "reshape" in tensor else "dims"))
        for index, tensor in enumerate(inputs)
    ]
    reshaped = {tensor.get("name") for tensor in inputs if "reshape" in tensor}
    for number, sample in enumerate(overrides.get("model_warmup", ())):
        within: Path = ("model_warmup", number, "inputs")
        tensors = {name: tensor for name, tensor in sample.get("inputs", {}).items() if name not in reshaped}
        yield [(name, tensor.get("dims", ()), (*within, name, "dims")) for name, tensor in tensors.items()]
    for number, spec in enumerate(overrides.get("optimization", {}).get("cuda", {}).get("graph_spec", ())):
        within = ("optimization", "cuda", "graph_spec", number, "input")
        yield [(name, shape.get("dim", ()), (*within, name, "dim")) for name, shape in spec.get("input", {}).items()]


def _taken(tensor: Overrides) -> Sequence[int]:
    """Return the dims that the model takes: the shape of `reshape` where the tensor has this field, else its dims."""
    dims: Sequence[int] = tensor["reshape"].get("shape", ()) if "reshape" in tensor else tensor.get("dims", ())
    return dims


def _sizes(shapes: Shapes, about: About) -> Iterator[Fault]:
    first: dict[str, tuple[int, str]] = {}
    for name, dims, at in shapes:
        if about.part in _OF_TEXTS and name == TEXT and len(dims) == 1 and dims[0] > _MOST_TEXTS:
            what = f"{dims[0]} texts a row: a row of {name} is one text, or two that belong together"
            yield Fault(what, at, "use [1], or [2] for pairs")
        tensor = (about.inputs or {}).get(name, ConfigTensor())
        for axis, size in zip(tensor.axes, dims, strict=False):  # `tensors.rule` reports a wrong number of dims
            if axis is None or size < 1:
                continue
            least, most = about.sizes.get(axis, (size, size))
            if not least <= size <= most:
                what = f"{name!r} with {axis} {size}, and the profiles take {least} to {most}"
                yield Fault(what, at, "stay within them, or widen a profile")
            agreed, other = first.setdefault(axis, (size, name))
            if size != agreed:
                what = f"{axis} is {size} in {name!r} and {agreed} in {other!r}: the model has one for both"
                yield Fault(what, at, "make them the same")
