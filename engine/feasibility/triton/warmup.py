"""Warm-up: requests that Triton sends to a model before it reports the model as ready."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from engine.feasibility.triton.fault import (
    About,
    ConfigTensor,
    Fault,
    Overrides,
    Path,
    twice,
    unknown_tensor,
)
from engine.runtimes.backends import Backend

_FIELD = "model_warmup"
_ASKING = ("generate", "stream")
"""Parts of a package that cannot be warmed up, because they call models of the package, and Triton forbids such calls
during warm-up."""
_DATA = ("zero_data", "random_data", "input_data_file")


def rule(overrides: Overrides, about: About) -> Iterator[Fault]:
    """Yield a fault for each warm-up request that the model would not take; Triton then refuses to load the model."""
    samples = overrides.get(_FIELD)
    if samples is None or about.backend is Backend.ENSEMBLE:
        return
    if about.part in _ASKING and samples:
        what = f"the {about.part} cannot be warmed up: it asks the package's graphs, which answer when all is loaded"
        yield Fault(what, (_FIELD,), "warm up the graphs themselves", at_key=True)
        return
    tensors = _as_sent(overrides, about)
    for index, sample in enumerate(samples):
        path = (_FIELD, index)
        if not sample.get("name"):
            yield Fault("a warm-up needs a name: Triton's log calls it by that", path, "add name: ...")
        yield from _batch(sample, path, about)
        yield from _inputs(sample.get("inputs", {}), path, tensors)
    names = [sample.get("name") for sample in samples]
    for index in twice(names):
        yield Fault(f"two warm-ups are called {names[index]!r}", (_FIELD, index, "name"), "name one otherwise")


def _as_sent(overrides: Overrides, about: About) -> Mapping[str, ConfigTensor] | None:
    """Return the inputs with the dims that clients send, from the overrides or else from the package."""
    if about.inputs is None:
        return None
    own = {name: replace(tensor, dims=tensor.sent or tensor.dims) for name, tensor in about.inputs.items()}
    for tensor in overrides.get("input", ()):
        name = tensor.get("name")
        if name in own and tensor.get("dims"):
            own[name] = replace(own[name], dims=tuple(tensor["dims"]))
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


def _inputs(inputs: Mapping[str, Any], path: Path, tensors: Mapping[str, ConfigTensor] | None) -> Iterator[Fault]:
    for name, sample in inputs.items():
        at = (*path, "inputs", name)
        if tensors is not None and name not in tensors:
            yield unknown_tensor("input", name, at, tensors, at_key=True)
            continue
        yield from _data(sample, at)
        yield from _tensor(sample, at, tensors[name] if tensors is not None else ConfigTensor())
    for name, tensor in (tensors or {}).items():
        if name not in inputs and not tensor.optional:
            yield Fault(f"the warm-up lacks the input {name!r}", path, "add it under inputs")


def _data(sample: Mapping[str, Any], at: Path) -> Iterator[Fault]:
    chosen = [field for field in _DATA if field in sample]
    if not chosen:
        yield Fault("the warm-up has no data for this input", at, "add zero_data: true or random_data: true")
    for field in chosen:
        if sample[field] is False:
            yield Fault(f"`{field}: false` is no data", (*at, field), "true is meant, or another source of data")
        elif not sample[field]:
            yield Fault("the file has no name", (*at, field), "name a file beside the recipe")


def _tensor(sample: Mapping[str, Any], at: Path, own: ConfigTensor) -> Iterator[Fault]:
    kind, dims = sample.get("data_type"), sample.get("dims", [])
    if kind is None:
        yield Fault("the warm-up does not say this input's data_type", at, f"add data_type: {own.data_type or '...'}")
    elif own.data_type is not None and kind != own.data_type:
        yield Fault(f"the input is {own.data_type}, not {kind}", (*at, "data_type"), f"use {own.data_type}")
    wrong = [size for size in dims if size < 1]
    if wrong:
        what = f"a warm-up has whole sizes, and {dims} has a {wrong[0]}"
        yield Fault(what, (*at, "dims"), "as in dims: [16]")
    elif own.dims is not None and not own.takes(dims):
        what = f"the input cannot be {dims}: the model has {list(own.dims)}, the batch apart"
        yield Fault(what, (*at, "dims") if "dims" in sample else at, "say a size for each dimension")
