"""Questions: the cases that an original model runs on, made from samples, built-in texts or random tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from engine import tasks
from engine.errors import StepError
from engine.kit.inputs import random_inputs, samples, token_rows
from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.inputs.cases import Case
from engine.kit.inputs.samples import SampleText
from engine.kit.inputs.token_rows import Padding, RowLimits, Vocabulary
from engine.kit.inputs.tokenizer import Tokenizer
from engine.kit.reference import batches
from engine.kit.reference.own_tokenizer import OwnTokenizer
from engine.tasks import Generates

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.reference.original_model import Original
    from engine.recipe.shape_values import Values
    from engine.recipe.values import Profile
_QUOTED = 80
"""The largest number of characters of a text that an error quotes."""
_SHOWN = 12
"""The largest number of tokens of a text that an error shows."""
_HINT = (
    'if tokenizer.json is right, write "tokenizer_class": "PreTrainedTokenizerFast" into tokenizer_config.json; if '
    "transformers is right, load the tokenizer with AutoTokenizer.from_pretrained, save it with save_pretrained, and "
    "name the directory that it is saved in as `tokenizer` beside `source`"
)


def ask(
    original: Original,
    checkpoint: Path,
    file: Path | None,
    *,
    task: str,
    profiles: Sequence[Profile] = (),
    values: Sequence[Mapping[str, Values]] = (),
) -> list[Case]:
    """Return the cases that the original model is run on, without outputs.

    Where the recipe names no file of samples, a text model with a tokenizer gets the texts that come with this project.
    A text model without a tokenizer gets random tokens, and a model that takes no text gets random tensors, both within
    `profiles`. Texts for a model without a known limit of tokens are cut to `profiles`, too. `values` are the values of
    inputs that the profiles state.

    Raises StepError where the samples do not suit the model.
    """
    specs = original.input_specs
    if original.vocabulary is None:
        if file is None:
            return drawn(original, profiles, values)
        tensors = samples.read(file, checkpoint, specs)
        return [*tensors, *batches.of_tensors(tensors, specs)]
    longest = _longest(original, profiles)
    limits = RowLimits.of(specs, longest)
    tokenizer = tokenizers.load(checkpoint, longest=limits.sequence[1])
    if file is None and tokenizer is None:
        return drawn(original, profiles)
    if file is not None and file.suffix != ".jsonl":
        cases = samples.read(file, checkpoint, specs)
    else:
        texts = samples.texts(file) if file else samples.built_in(paired=tasks.find(task).paired)
        cases = samples.tokenize(texts, checkpoint, specs, longest=longest)
        if original.tokenizer is not None and tokenizer is not None:
            own, pairs = original.tokenizer, zip(cases, texts, strict=True)
            cases = [with_own_inputs(case, text, own, tokenizer) for case, text in pairs]
            if not tasks.generates(task):  # a package that generates text pads its prompts itself
                _refuse_other_side(own, tokenizer)
    pad = original.vocabulary.pad if tokenizer is None else tokenizer.pad
    side = "right" if tokenizer is None else tokenizer.side
    return [
        *cases,
        *batches.of_texts(cases, specs, pad=pad, limits=limits, side=side),
        *batches.long_row(cases, specs, types=original.vocabulary.types, limits=limits),
    ]


def padding(original: Original, checkpoint: Path, *, task: str) -> Padding | None:
    """Return how a package of the model pads texts; None for a model that takes no texts.

    A decoder-only model that generates text continues its prompts at their ends, so they are padded on the left.
    """
    if original.vocabulary is None:
        return None
    tokenizer = tokenizers.load(checkpoint)
    if tokenizer is None:
        return None
    return Padding(tokenizer.pad, "left" if tasks.find(task).generates is Generates.CONTINUES else tokenizer.side)


def _longest(original: Original, profiles: Sequence[Profile]) -> int | None:
    """Return the number of tokens to which texts are cut: the model's limit, or where none is known, the profiles'."""
    axis = original.input_specs["input_ids"].shape[1]
    sizes = [int(profile[axis].max) for profile in profiles if isinstance(axis, str) and axis in profile]
    return original.longest or max(sizes, default=None)


def drawn(
    original: Original,
    profiles: Sequence[Profile],
    values: Sequence[Mapping[str, Values]] = (),
    *,
    seed: int = random_inputs.SEED,
) -> list[Case]:
    """Return cases of random inputs within `profiles`; `values` are the values of inputs that the profiles state.

    A model that takes tokens also gets batches with every kind of attention mask. Values may fit one size of a batch
    only, so that no row of a batch runs alone then.
    """
    if original.vocabulary is not None:
        return list(_random_rows(original, original.vocabulary, profiles, seed))
    sets = random_inputs.tensors(original.input_specs, original.ranges, profiles, values=values, seed=seed)
    cases = [Case(f"random {number}", "random tensors", "random", inputs, {}) for number, inputs in enumerate(sets, 1)]
    return cases if values else [*cases, *batches.alone(cases, original.input_specs, profiles)]


def _random_rows(original: Original, vocabulary: Vocabulary, profiles: Sequence[Profile], seed: int) -> Iterator[Case]:
    specs, pad = original.input_specs, vocabulary.pad
    for number, profile in enumerate(profiles or ({},), 1):
        limits = random_inputs.limits(specs, profile, original.longest)
        prefix = f"profile {number}: " if len(profiles) > 1 else ""
        rows: list[Case] = []
        for row in random_inputs.rows(vocabulary, limits, seed=seed):
            inputs = token_rows.fit(token_rows.alone(row, pad=pad, limits=limits), specs)
            rows.append(Case(f"{prefix}random {len(rows) + 1}", "random tokens", "random", inputs, {}))
        yield from rows
        yield from batches.of_texts(rows, specs, pad=pad, limits=limits, prefix=prefix)


def _refuse_other_side(own: OwnTokenizer, packaged: Tokenizer) -> None:
    """Raise StepError where the tokenizer of a package pads texts on another side than the checkpoint's own."""
    side = own.tokenizer.padding_side
    if side != packaged.side:
        raise StepError(
            f"the tokenizer pads texts on the {side}, and its files do not say so",
            [f"the class {own.kind} of transformers decides it"],
            f'write "padding_side": "{side}" into tokenizer_config.json',
        )


def with_own_inputs(case: Case, text: SampleText, own: OwnTokenizer, packaged: Tokenizer) -> Case:
    """Return the case of a text with the inputs that a user of the original model makes of the text.

    `packaged` is the tokenizer that a package gets; it made the inputs of `case`. Raises StepError where `packaged`
    makes other tokens than the checkpoint's own tokenizer.
    """
    whole = packaged.prompt + text.text
    inputs = own.inputs(whole, text.pair, longest=packaged.longest)
    row = packaged.row(text.text, text.pair)
    for name in (name for name in inputs if name in row):
        if inputs[name].tolist() != row[name].tolist():
            raise StepError(
                "the tokenizer's files do not do what transformers does with them",
                [f"of {case.name}: {text.text[:_QUOTED]!r}", *_differing(name, own, inputs, row)],
                _HINT,
            )
    length = max((tensor.shape[1] for tensor in case.inputs.values()), default=0)
    if length > len(row["input_ids"][0]):  # the model takes texts of one length alone, as it was trained with padding
        inputs = own.inputs(whole, text.pair, longest=length, fills=True)
    return replace(case, own_inputs=inputs)


def _differing(
    name: str, own: OwnTokenizer, inputs: Mapping[str, np.ndarray], row: Mapping[str, np.ndarray]
) -> list[str]:
    """Return lines with the values of both tokenizers from the first difference on."""
    pairs = list(zip_longest(inputs[name][0].tolist(), row[name][0].tolist()))
    start = next(index for index, (one, other) in enumerate(pairs) if one != other)
    lines = zip((own.kind, "its files"), zip(*pairs[start : start + _SHOWN], strict=True), strict=True)
    listed = ((who, ", ".join(str(each) for each in values if each is not None)) for who, values in lines)
    return [f"{name} by {who}, from position {start}: {values or 'none'}" for who, values in listed]
