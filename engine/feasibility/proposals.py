"""Proposals: the profile that an error proposes for a model, as YAML that a recipe can contain unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from engine.recipe.values import Range
from engine.runtimes import axes
from engine.runtimes.profiles import in_words, usual_ranges
from engine.runtimes.triton_tensors import is_batch

if TYPE_CHECKING:
    from engine.feasibility.facts import ModelFacts

_IMAGE_RANK = 4
"""The number of axes of an image: batch, channels, height and width, in any order."""
_PIXELS = Range(min=224, opt=224, max=448)
_SAMPLES = Range(min=16000, opt=16000, max=32000)
"""One to two seconds of speech at 16 kHz."""
_OTHER = Range(min=8, opt=16, max=64)
_AUDIO = ("sample", "audio", "wave", "signal", "pcm")
_TEXT = ("seq", "token", "text", "char")


def profiles(facts: ModelFacts, stated: Mapping[str, Range] | None = None) -> str:
    """Return `profiles: [...]` for all axes of any size: the sizes in `stated`, and guesses by the names of axes."""
    return as_yaml(ranges(facts, stated or {}))


def shape(facts: ModelFacts, stated: Mapping[str, Range]) -> str:
    """Return a shape of `bench` as `{batch: 1, ...}`, with the sizes in `stated` and guesses for the other axes."""
    usual = {axis: extents.opt for axis, extents in ranges(facts, stated).items()}
    return "{" + ", ".join(f"{axes.as_key(axis)}: {size}" for axis, size in usual.items()) + "}"


def as_yaml(proposed: Mapping[str, Range]) -> str:
    """Return a profile as `profiles: [...]`, as a recipe writes it."""
    pairs = (f"{axes.as_key(axis)}: {in_words(extents)}" for axis, extents in proposed.items())
    return "profiles: [{" + ", ".join(pairs) + "}]"


def ranges(facts: ModelFacts, stated: Mapping[str, Range]) -> dict[str, Range]:
    """Return the sizes of all axes of any size: those in `stated`, and guesses for the others."""
    return {axis: stated.get(axis) or _guess(axis, facts) for axis in facts.dynamic or ()}


def _guess(axis: str, facts: ModelFacts) -> Range:
    name = axis.lower()
    usual = usual_ranges(facts.max_sequence)
    shapes = [shape for shape in facts.axes.values() if axis in shape]
    if any(part in name for part in _AUDIO):
        return _SAMPLES
    if any(part in name for part in _TEXT):
        return usual["sequence"]
    if is_batch(axis) or all(shape[0] == axis for shape in shapes):
        return usual["batch"]
    return _PIXELS if any(len(shape) == _IMAGE_RANK for shape in shapes) else _OTHER
