"""Settings: what a checkpoint says about how its text is generated, as far as greedy generation goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints.json_files import settings as json_object
from engine.kit.generation.greedy import Rules

_DEFAULT_NEW_TOKENS = 128
"""How many tokens an answer has at most where neither the recipe nor the model says."""
_NEUTRAL: tuple[Any, ...] = (None, False, 0, "", [], {})

# Whatever transformers' GenerationConfig has and this does not do, with the value that changes nothing.
_NOT_HONOURED: Mapping[str, Any] = {
    "sequence_bias": None,
    "guidance_scale": 1.0,
    "encoder_repetition_penalty": 1.0,
    "encoder_no_repeat_ngram_size": 0,
    "remove_invalid_values": False,
    "exponential_decay_length_penalty": None,
    "watermarking_config": None,
    "token_healing": False,
    "max_time": None,
    "constraints": None,
    "force_words_ids": None,
}
_NOT_GREEDY: Mapping[str, Any] = {
    "num_beams": 1,
    "num_beam_groups": 1,
    "num_return_sequences": 1,
    "do_sample": False,
    "penalty_alpha": None,
    "dola_layers": None,
}
"""Ways to choose a token that are not greedy, each with the value of greedy generation."""


@dataclass(frozen=True)
class Settings:
    """How a model's text is generated; lengths count tokens."""

    rules: Rules
    pad_token_id: int
    """What rows are filled up with."""
    first_token_id: int | None
    """What an empty prompt is made of: the beginning of a text, else its end; None where the model has neither."""
    decoder_start_token_id: int | None
    """What the decoder of a text2text model begins with; None for a model that is a decoder alone."""
    max_new_tokens: int
    """The most new tokens of a row, and how many it gets where nobody says."""
    positions: int | None
    """The most tokens that the model can look at; None where there is no limit or none is known."""
    stop_strings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What the model asks for and does not get, for the log."""

    def as_json(self) -> dict[str, object]:
        """Return the settings as JSON values; `Rules(**said["rules"])` reads the rules again."""
        return asdict(self)


def read(checkpoint: Path, *, max_new_tokens: int | None = None, longest: int | None = None) -> Settings:
    """Return the settings of a checkpoint: those of generation_config.json, without it those of config.json.

    `max_new_tokens` is the recipe's word; without it the model's own counts. `longest` is the most tokens of prompt and
    answer that the profiles allow. As in transformers, a generation_config.json stands alone.

    Raises StepError for what greedy generation cannot honour, by its name, and
    for lengths that the model has no room for.
    """
    config = checkpoints.config(checkpoint)
    path = checkpoint / "generation_config.json"
    said = json_object(path) if path.is_file() else config
    name = path.name if path.is_file() else "config.json"
    _refuse(said, name)
    start = _start(said, name) if config.get("is_encoder_decoder") else None
    ends, beginning = _ids(said, "eos_token_id", name), _ids(said, "bos_token_id", name)
    limits = [limit for limit in (checkpoints.max_sequence(checkpoint), longest) if limit is not None]
    positions = min(limits, default=None)
    return Settings(
        rules=_rules(said, name),
        pad_token_id=_pad(said, config, ends),
        first_token_id=(*beginning, *ends, None)[0],
        decoder_start_token_id=start,
        max_new_tokens=_new_tokens(said, max_new_tokens, positions, start),
        positions=positions,
        stop_strings=_texts(said.get("stop_strings")),
        notes=_notes(said, name),
    )


def _rules(said: Mapping[str, Any], name: str) -> Rules:
    new = _number(said, "min_new_tokens", name)
    forced = _ids(said, "forced_bos_token_id", name)
    if not forced and said.get("force_bos_token_to_be_generated") is True:  # what older configurations call it
        forced = _ids(said, "bos_token_id", name)
    return Rules(
        eos_token_id=_ids(said, "eos_token_id", name),
        repetition_penalty=_penalty(said, name),
        no_repeat_ngram_size=_number(said, "no_repeat_ngram_size", name),
        bad_words_ids=tuple(map(tuple, said.get("bad_words_ids") or ())),
        min_length=0 if new else _number(said, "min_length", name),  # of the two, the new tokens count
        min_new_tokens=new,
        forced_bos_token_id=forced[0] if forced else None,
        forced_eos_token_id=_ids(said, "forced_eos_token_id", name),
        suppress_tokens=_ids(said, "suppress_tokens", name),
        begin_suppress_tokens=_ids(said, "begin_suppress_tokens", name),
    )


def _refuse(said: Mapping[str, Any], name: str) -> None:
    asked = [field for field, neutral in _NOT_HONOURED.items() if said.get(field) not in (*_NEUTRAL, neutral)]
    if asked:
        raise StepError(
            "the model's own settings ask for what greedy generation here does not do",
            [f"{name}: {field}: {said[field]}" for field in asked],
            f"without it the answers are others: take it out of {name} if they may be",
        )


def _notes(said: Mapping[str, Any], name: str) -> tuple[str, ...]:
    asked = [field for field, greedy in _NOT_GREEDY.items() if said.get(field) not in (*_NEUTRAL, greedy)]
    return tuple(f"{name} asks for {field}: {said[field]}; text is generated greedily all the same" for field in asked)


def _start(said: Mapping[str, Any], name: str) -> int:
    found = _ids(said, "decoder_start_token_id", name) or _ids(said, "bos_token_id", name)
    if not found:
        raise StepError(
            "the model does not say which token its decoder begins with",
            [f"{name} has neither decoder_start_token_id nor bos_token_id"],
            "save the model with its generation_config.json",
        )
    return found[0]


def _pad(said: Mapping[str, Any], config: Mapping[str, Any], ends: tuple[int, ...]) -> int:
    """Return the id that rows are filled up with; any will do where the model has none, for it is masked."""
    own = (said.get("pad_token_id"), config.get("pad_token_id"), *ends)
    return next((number for number in own if isinstance(number, int) and number >= 0), 0)


def _new_tokens(said: Mapping[str, Any], asked: int | None, positions: int | None, start: int | None) -> int:
    """Return the most new tokens: the recipe's word, the model's own, or what is usual. One token is the prompt's."""
    room = None if positions is None else positions - 1
    if asked is not None:
        if room is not None and asked > room:
            raise StepError(
                f"the model has no room for {asked} new tokens",
                [f"it can look at {positions} tokens, the prompt's among them"],
                f"set generate.max_new_tokens to {room} at most; the more, the less of a long prompt is read",
            )
        return asked
    own = said.get("max_new_tokens")
    if own is None and start is not None and isinstance(said.get("max_length"), int):
        own = said["max_length"] - 1  # the decoder's first token is among them
    wanted = own if isinstance(own, int) and own > 0 else _DEFAULT_NEW_TOKENS
    return wanted if positions is None else max(min(wanted, positions // 2), 1)


def _ids(said: Mapping[str, Any], field: str, name: str) -> tuple[int, ...]:
    """Return what may be one token or several. Negative ones mean none, as in old configurations."""
    value = said.get(field)
    listed = [] if value is None else value if isinstance(value, list) else [value]
    if not all(isinstance(each, int) for each in listed):
        raise _wrong(field, value, name)
    return tuple(each for each in listed if each >= 0)


def _number(said: Mapping[str, Any], field: str, name: str) -> int:
    value = said.get(field) or 0
    if not isinstance(value, int) or value < 0:
        raise _wrong(field, value, name)
    return int(value)


def _penalty(said: Mapping[str, Any], name: str) -> float:
    value = said.get("repetition_penalty")
    if value is None:
        return 1.0
    if not isinstance(value, int | float) or value <= 0:
        raise _wrong("repetition_penalty", value, name)
    return float(value)


def _texts(value: Any) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else value or ()
    return tuple(str(text) for text in listed if text)


def _wrong(field: str, value: Any, name: str) -> StepError:
    return StepError(f"{name} of the model has a {field} that cannot be", [repr(value)[:200]], "save the model again")
