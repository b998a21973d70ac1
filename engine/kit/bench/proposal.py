"""Proposal: the profiles and the batching that follow from the lengths of samples, as YAML for a recipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from engine.feasibility import shapes
from engine.feasibility.facts import ModelFacts
from engine.kit.bench.sample_report import Batching, SampleLengths
from engine.recipe.values import Range
from engine.runtimes import axes, registry
from engine.runtimes.profiles import in_words

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe

_TOKENS = "input_ids"
_FIELD = "package.triton.max_batch_size"


def yaml(recipe: Recipe, facts: ModelFacts, lengths: SampleLengths) -> str:
    """Return lines of YAML that replace the fields of the same names in the recipe; "" where the axes are not known.

    The profiles together take every shape that the recipe's own profiles take. Batching by Triton is proposed only if
    it was measured to be faster than one text at a time, in the order of arrival: a server cannot sort.
    """
    fastest = lengths.fastest()
    if _TOKENS not in facts.axes or fastest is None or not lengths.buckets:
        return ""
    lines = [f"profiles:  # {_about(lengths)}"]
    lines += [f"  - {{{_in_yaml(facts, *ends)}}}" for ends in _profiles(recipe, facts, lengths, fastest)]
    return "\n".join([*lines, *_batching(recipe, facts, lengths)]) + "\n"


def _about(lengths: SampleLengths) -> str:
    one = f"{lengths.padding_in_one_bucket:.1%} with every text padded to {lengths.buckets[-1]} tokens"
    return f"padding {lengths.padding_in_buckets:.1%} of the positions with texts in buckets; {one}"


def _profiles(
    recipe: Recipe, facts: ModelFacts, lengths: SampleLengths, fastest: Batching
) -> Iterator[tuple[Range, Range]]:
    """Yield the batch and the tokens of each profile, shortest texts first."""
    batch, tokens = _extents(recipe, facts, 0, fastest.batch), _extents(recipe, facts, 1, lengths.buckets[-1])
    batch = Range(min=batch.min, opt=min(max(fastest.batch, batch.min), batch.max), max=batch.max)
    apart = registry.of(recipe).compiles_sizes
    least = tokens.min
    for bucket in lengths.buckets:
        if apart:
            batch_size, length = (Range(min=size, opt=size, max=size) for size in (fastest.batch, bucket))
            yield batch_size, length
            continue
        last = bucket == lengths.buckets[-1]
        yield batch, Range(min=min(least, bucket), opt=bucket, max=tokens.max if last else bucket)
        least = bucket + 1
    if apart:  # free shapes, for texts and batches of any other size
        yield batch, Range(min=tokens.min, opt=lengths.buckets[-1], max=tokens.max)


def _extents(recipe: Recipe, facts: ModelFacts, place: int, largest: int) -> Range:
    """Return the sizes that the recipe's profiles together allow of an axis of the tokens, and at least `largest`."""
    axis = facts.axes[_TOKENS][place]
    stated = [profile[str(axis)] for profile in shapes.profiles(recipe, facts) if str(axis) in profile]
    least = min((int(each.min) for each in stated), default=1)
    most = max((*(int(each.max) for each in stated), largest))
    return Range(min=min(least, largest), opt=largest, max=most)


def _in_yaml(facts: ModelFacts, batch: Range, tokens: Range) -> str:
    """Return a profile for all axes of any size: the first axis of each input is its batch, the second its tokens."""
    sizes: Mapping[str, Range] = {
        axis: extents
        for shape in facts.axes.values()
        for axis, extents in zip(shape, (batch, tokens), strict=False)
        if isinstance(axis, str)
    }
    return ", ".join(
        f"{axes.as_key(axis)}: {extents.opt if extents.min == extents.max else in_words(extents)}"
        for axis, extents in sizes.items()
    )


def _batching(recipe: Recipe, facts: ModelFacts, lengths: SampleLengths) -> list[str]:
    """Return the lines about Triton's batches; none where Triton joins no requests for the model."""
    fastest = lengths.fastest("arrival")
    if fastest is None or isinstance(facts.axes[_TOKENS][0], int) or not _joins(recipe):
        return []
    if fastest.batch == 1 or not fastest.pays:
        return ["# no dynamic_batching: in arrival order, no batch was faster than one text at a time"]
    return [
        "package:",
        f"  triton:  # in arrival order {fastest.gain:.2f} x the texts of one at a time",
        f"    max_batch_size: {fastest.batch}",
        f"    dynamic_batching: {{preferred_batch_size: [{fastest.batch}]}}",
    ]


def _joins(recipe: Recipe) -> bool:
    """Tell whether Triton may join requests for models of the recipe's runtime."""
    triton = recipe.package.triton.model_copy(update={"max_batch_size": 2})
    batched = recipe.model_copy(update={"package": recipe.package.model_copy(update={"triton": triton})})
    runtime = registry.of(recipe)
    return runtime.loads_in_triton and all(each.field != _FIELD for each in runtime.unsupported(batched))
