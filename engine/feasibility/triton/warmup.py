"""Warm-up: requests that Triton sends to a model before it reports the model as ready."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from engine.feasibility.triton.fault import About, ConfigTensor, Fault, Overrides, Path, Tensors, missing, unknown

_FIELD = "model_warmup"
_ASKING = ("generate", "stream")
"""Parts of a package that cannot be warmed up, because they call models of the package, and Triton forbids such calls
during warm-up."""
_DATA = ("zero_data", "random_data", "input_data_file")


def rule(overrides: Overrides, about: About) -> Iterator[Fault]:
    """Yield a fault for each warm-up request that the model would not take; Triton then refuses to load the model."""
    samples = overrides.get(_FIELD, ())
    if about.part in _ASKING and samples:
        what = f"the {about.part} cannot be warmed up: it asks the package's graphs, which answer when all is loaded"
        yield Fault(what, (_FIELD,), "warm up the graphs themselves", at_key=True)
        return
    tensors = _as_sent(overrides, about)
    for index, sample in enumerate(samples):
        path, inputs = (_FIELD, index), sample.get("inputs", {})
        yield from _batch(sample, path, about)
        for name, each in inputs.items():
            yield from unknown("input", name, (*path, "inputs", name), tensors, at_key=True)
            yield from _input(each, (*path, "inputs", name), (tensors or {}).get(name, ConfigTensor()))
        yield from missing(tensors, inputs, path, "warm-up's input")


def _as_sent(overrides: Overrides, about: About) -> Tensors:
    """Return the inputs with the dims that clients send, from the overrides or else from the package."""
    if about.inputs is None:
        return None
    own = {name: replace(tensor, dims=tensor.sent or tensor.dims) for name, tensor in about.inputs.items()}
    for tensor in overrides.get("input", ()):
        if tensor["name"] in own:
            own[tensor["name"]] = replace(own[tensor["name"]], dims=tuple(tensor["dims"]))
    return own


def _batch(sample: Mapping[str, Any], path: Path, about: About) -> Iterator[Fault]:
    size, at = sample.get("batch_size", 0), (*path, "batch_size")
    if about.batch == 0 and size > 1:
        what = f"a warm-up of batch {size}, and the model takes no batches: max_batch_size is 0"
        yield Fault(what, at, "leave it out, and say the whole shape as dims")
    elif about.largest and size > about.largest:
        hint = f"at most {about.largest} is meant"
        yield Fault(f"a warm-up of batch {size}, and {about.batch_limit}", at, hint)
    elif about.largest and size < 1:
        where = at if "batch_size" in sample else path
        yield Fault("a warm-up of no rows: Triton would skip it", where, "add batch_size: 1, or more")


def _input(sample: Mapping[str, Any], at: Path, own: ConfigTensor) -> Iterator[Fault]:
    chosen = next((field for field in _DATA if field in sample), None)
    if chosen is None:
        yield Fault("the warm-up has no data for this input", at, "add zero_data: true or random_data: true")
    elif not sample[chosen]:
        yield Fault(f"`{chosen}` is no data", (*at, chosen), "true is meant, or a file beside the recipe")
    kind, dims = sample["data_type"], sample.get("dims", [])
    if own.data_type not in (None, kind):
        yield Fault(f"the input is {own.data_type}, not {kind}", (*at, "data_type"), f"use {own.data_type}")
    if own.dims is not None and not own.takes(dims):
        what = f"the input cannot be {dims}: the model has {list(own.dims)}, the batch apart"
        yield Fault(what, (*at, "dims") if "dims" in sample else at, "say a size for each dimension")
