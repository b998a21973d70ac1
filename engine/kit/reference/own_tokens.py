"""Own tokens: proof that a package's tokenizer makes of texts what the checkpoint's own tokenizer makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.inputs.cases import Case
from engine.kit.inputs.samples import SampleText
from engine.kit.inputs.tokenizer import Tokenizer
from engine.kit.reference.own_tokenizer import OwnTokenizer

if TYPE_CHECKING:
    import numpy as np

_QUOTED = 80
"""The largest number of characters of a text that an error quotes."""
_SHOWN = 12
"""The largest number of tokens of a text that an error shows."""
_HINT = (
    'if tokenizer.json is right, write "tokenizer_class": "PreTrainedTokenizerFast" into tokenizer_config.json; if '
    "transformers is right, load the tokenizer with AutoTokenizer.from_pretrained, save it with save_pretrained, and "
    "name the directory that it is saved in as `tokenizer` beside `source`"
)


def attach(cases: Sequence[Case], texts: Sequence[SampleText], own: OwnTokenizer, packaged: Tokenizer) -> list[Case]:
    """Return the cases of texts with the inputs that a user of the original model makes of the texts.

    `packaged` is the tokenizer that a package gets; it made the inputs of `cases`. Raises StepError where `packaged`
    makes other tokens than the checkpoint's own tokenizer.
    """
    return [_attached(case, text, own, packaged) for case, text in zip(cases, texts, strict=True)]


def refuse_other_side(own: OwnTokenizer, packaged: Tokenizer) -> None:
    """Raise StepError where the tokenizer of a package pads texts on another side than the checkpoint's own."""
    side = own.tokenizer.padding_side
    if side != packaged.side:
        raise StepError(
            f"the tokenizer pads texts on the {side}, and its files do not say so",
            [f"the class {own.kind} of transformers decides it"],
            f'write "padding_side": "{side}" into tokenizer_config.json',
        )


def _attached(case: Case, text: SampleText, own: OwnTokenizer, packaged: Tokenizer) -> Case:
    inputs = own.inputs(packaged.prompt + text.text, text.pair, longest=packaged.longest)
    row = packaged.row(text.text, text.pair)
    for name in (name for name in inputs if name in row):
        if inputs[name].tolist() != row[name].tolist():
            raise StepError(
                "the tokenizer's files do not do what transformers does with them",
                [f"of {case.name}: {text.text[:_QUOTED]!r}", *_differing(name, own, inputs, row)],
                _HINT,
            )
    return replace(case, own_inputs=inputs)


def _differing(
    name: str, own: OwnTokenizer, inputs: Mapping[str, np.ndarray], row: Mapping[str, np.ndarray]
) -> list[str]:
    """Return lines with the values of both tokenizers from the first difference on."""
    pairs = list(zip_longest(inputs[name][0].tolist(), row[name][0].tolist()))
    start = next(index for index, (one, other) in enumerate(pairs) if one != other)
    lines = zip((own.kind, "its files"), zip(*pairs[start : start + _SHOWN], strict=True), strict=True)
    return [f"{name} by {who}, from position {start}: {_listed(values)}" for who, values in lines]


def _listed(values: Sequence[int | None]) -> str:
    return ", ".join(str(value) for value in values if value is not None) or "none"
