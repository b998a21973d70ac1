"""Questions to an original model: samples from a file, our own texts or random tensors, and masks of every kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine import tasks
from engine.kit.inputs import random_inputs, samples, token_rows
from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.inputs.cases import Case
from engine.kit.inputs.token_rows import RowLimits

if TYPE_CHECKING:
    from engine.kit.onnx.onnx_files import Input
    from engine.kit.reference.originals import Original
    from engine.recipe.schema import Profile


def ask(
    original: Original, checkpoint: Path, file: Path | None, *, task: str, profiles: Sequence[Profile] = ()
) -> list[Case]:
    """Return the cases to run, still without outputs.

    Without a file, a text model with a tokenizer gets texts of our own, and any other model seeded random tensors,
    within `profiles` where there are some. Raises StepError where the file does not suit the model.
    """
    if original.vocabulary is None:
        return samples.read(file, checkpoint, original.wanted) if file else drawn(original, profiles)
    limits = RowLimits.of(original.wanted, original.longest)
    tokenizer = tokenizers.load(checkpoint, longest=limits.sequence[1])
    if file is None and tokenizer is None:
        return drawn(original, profiles)
    if file is None:
        texts = samples.built_in(paired=tasks.find(task).paired)
        asked = samples.tokenize(texts, checkpoint, original.wanted, longest=original.longest)
    else:
        asked = samples.read(file, checkpoint, original.wanted, longest=original.longest)
    pad = original.vocabulary.pad if tokenizer is None else tokenizer.pad
    return [*asked, *masked(asked, original.wanted, pad=pad, limits=limits)]


def drawn(original: Original, profiles: Sequence[Profile], *, seed: int = random_inputs.SEED) -> list[Case]:
    """Return cases of seeded random inputs within `profiles`; of tokens also batches with masks of every kind."""
    return list((_tensors if original.vocabulary is None else _random_rows)(original, profiles, seed))


def _tensors(original: Original, profiles: Sequence[Profile], seed: int) -> Iterator[Case]:
    found = random_inputs.tensors(original.wanted, original.ranges, profiles, seed=seed)
    for number, inputs in enumerate(found, 1):
        yield Case(f"random {number}", "random tensors", "random", inputs, {})


def _random_rows(original: Original, profiles: Sequence[Profile], seed: int) -> Iterator[Case]:
    if original.vocabulary is None:
        return
    pad = original.vocabulary.pad
    for place, profile in enumerate(profiles or ({},), 1):
        limits = random_inputs.limits(original.wanted, profile, original.longest)
        prefix = f"profile {place}: " if len(profiles) > 1 else ""
        rows: list[Case] = []
        for row in random_inputs.rows(original.vocabulary, limits, seed=seed):
            inputs = token_rows.fit(token_rows.alone(row, pad=pad, limits=limits), original.wanted)
            rows.append(Case(f"{prefix}random {len(rows) + 1}", "random tokens", "random", inputs, {}))
        yield from rows
        yield from masked(rows, original.wanted, pad=pad, limits=limits, prefix=prefix)


def masked(
    asked: Sequence[Case], wanted: Mapping[str, Input], *, pad: int, limits: RowLimits, prefix: str = ""
) -> Iterator[Case]:
    """Yield batches of the cases' own rows with masks of every kind, for a model that takes a mask."""
    if "attention_mask" not in wanted:
        return
    # Positions are counted anew in each batch.
    rows = [{name: tensor[:1] for name, tensor in case.inputs.items() if name != "position_ids"} for case in asked]
    made: dict[str, int] = {}
    for kind, chosen, inputs in token_rows.masked(rows, pad=pad, limits=limits):
        made[kind] = made.get(kind, 0) + 1
        names = ", ".join(dict.fromkeys(asked[index].name for index in chosen))
        yield Case(f"{prefix}{kind} {made[kind]}", names, kind, token_rows.fit(inputs, wanted), {})
