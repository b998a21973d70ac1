"""Settings: the options of greedy generation that a checkpoint's own config files contain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import json_files
from engine.kit.generation.greedy import Rules

_DEFAULT_NEW_TOKENS = 128
"""The largest number of new tokens in an answer where neither the recipe nor the model names a number."""
_NEUTRAL: tuple[Any, ...] = (None, False, 0, "", [], {})
"""Values that stand for "not set" in a field of any type."""

_UNSUPPORTED: Mapping[str, Any] = {
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
"""Unsupported fields of transformers' GenerationConfig -> the value with which a field changes nothing."""
_NOT_GREEDY: Mapping[str, Any] = {
    "num_beams": 1,
    "num_beam_groups": 1,
    "num_return_sequences": 1,
    "do_sample": False,
    "penalty_alpha": None,
    "dola_layers": None,
}
"""Each field that turns off greedy generation, for example for beam search -> its value in greedy generation."""


@dataclass(frozen=True)
class Settings:
    """The settings by which a model generates text. All lengths in the settings are numbers of tokens."""

    rules: Rules
    pad_token_id: int
    """The id of the token that pads rows."""
    first_token_id: int | None
    """The id of the token that stands for an empty prompt: the BOS token, else the EOS token, else None."""
    decoder_start_token_id: int | None
    """The id of the token with which the decoder of an encoder-decoder model begins; None for a decoder-only model."""
    max_new_tokens: int
    """The largest number of tokens that a request may generate in a row, and the number where a request names none."""
    positions: int | None
    """The largest number of tokens that the model has positions for; None where no limit is known."""
    stop_strings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Notes for the log: fields of the model's config that greedy generation ignores."""

    def as_json(self) -> dict[str, object]:
        """Return the settings as JSON values; `Rules(**settings["rules"])` makes the rules from the values again."""
        return asdict(self)


def read(checkpoint: Path, *, max_new_tokens: int | None = None, longest: int | None = None) -> Settings:
    """Return the settings of a checkpoint, from generation_config.json or, if missing, from config.json.

    `max_new_tokens` is the recipe's limit on new tokens; where it is None, the limit in the model's config counts.
    `longest` is the largest number of tokens, prompt and answer together, that the profiles allow. As in transformers,
    generation_config.json replaces config.json.

    Raises StepError where a config has a field that greedy generation does not support, and where the recipe's limit
    needs more positions than the model has.
    """
    model_config = checkpoints.config(checkpoint)
    path = checkpoint / "generation_config.json"
    config = json_files.settings(path) if path.is_file() else model_config
    name = path.name if path.is_file() else "config.json"
    _refuse(config, name)
    start = _start(config, name) if model_config.get("is_encoder_decoder") else None
    ends, beginning = _ids(config, "eos_token_id", name), _ids(config, "bos_token_id", name)
    limits = [limit for limit in (checkpoints.max_sequence(checkpoint), longest) if limit is not None]
    positions = min(limits, default=None)
    return Settings(
        rules=_rules(config, name),
        pad_token_id=_pad(config, model_config, ends),
        first_token_id=next(iter((*beginning, *ends)), None),
        decoder_start_token_id=start,
        max_new_tokens=_new_tokens(config, max_new_tokens, positions, start),
        positions=positions,
        stop_strings=_texts(config.get("stop_strings")),
        notes=_notes(config, name),
    )


def _rules(config: Mapping[str, Any], name: str) -> Rules:
    new = _number(config, "min_new_tokens", name)
    forced = _ids(config, "forced_bos_token_id", name)
    if not forced and config.get("force_bos_token_to_be_generated") is True:  # the name in older configs
        forced = _ids(config, "bos_token_id", name)
    return Rules(
        eos_token_id=_ids(config, "eos_token_id", name),
        repetition_penalty=_penalty(config, name),
        no_repeat_ngram_size=_number(config, "no_repeat_ngram_size", name),
        bad_words_ids=tuple(map(tuple, config.get("bad_words_ids") or ())),
        min_length=0 if new else _number(config, "min_length", name),  # as in transformers, min_new_tokens wins
        min_new_tokens=new,
        forced_bos_token_id=forced[0] if forced else None,
        forced_eos_token_id=_ids(config, "forced_eos_token_id", name),
        suppress_tokens=_ids(config, "suppress_tokens", name),
        begin_suppress_tokens=_ids(config, "begin_suppress_tokens", name),
    )


def _refuse(config: Mapping[str, Any], name: str) -> None:
    unsupported = [field for field, neutral in _UNSUPPORTED.items() if config.get(field) not in (*_NEUTRAL, neutral)]
    if unsupported:
        raise StepError(
            "the model's own settings have fields that greedy generation does not support",
            [f"{name}: {field}: {config[field]}" for field in unsupported],
            f"take the fields out of {name} if answers without their effect are good enough",
        )


def _notes(config: Mapping[str, Any], name: str) -> tuple[str, ...]:
    ignored = [field for field, greedy in _NOT_GREEDY.items() if config.get(field) not in (*_NEUTRAL, greedy)]
    return tuple(
        f"{name} asks for {field}: {config[field]}; text is generated greedily all the same" for field in ignored
    )


def _start(config: Mapping[str, Any], name: str) -> int:
    ids = _ids(config, "decoder_start_token_id", name) or _ids(config, "bos_token_id", name)
    if not ids:
        raise StepError(
            "the model does not say which token its decoder begins with",
            [f"{name} has neither decoder_start_token_id nor bos_token_id"],
            "save the model with its generation_config.json",
        )
    return ids[0]


def _pad(config: Mapping[str, Any], model_config: Mapping[str, Any], ends: tuple[int, ...]) -> int:
    """Return the id of the token that pads rows: the model's padding token, else its end token, else the token 0.

    Any token id may pad rows, because the attention mask hides padding.
    """
    own = (config.get("pad_token_id"), model_config.get("pad_token_id"), *ends)
    return next((number for number in own if isinstance(number, int) and number >= 0), 0)


def _new_tokens(config: Mapping[str, Any], limit: int | None, positions: int | None, start: int | None) -> int:
    """Return the largest number of new tokens in an answer: the recipe's `limit`, else the model's own, else a default.

    At least one position is left for the prompt. Raises StepError where the recipe's limit leaves no position for the
    prompt.
    """
    room = None if positions is None else positions - 1
    if limit is not None:
        if room is not None and limit > room:
            raise StepError(
                f"the model has no room for {limit} new tokens",
                [f"it has positions for {positions} tokens, those of the prompt included"],
                f"set generate.max_new_tokens to {room} at most; a larger number leaves fewer tokens of a long prompt",
            )
        return limit
    own = config.get("max_new_tokens")
    if own is None and start is not None and isinstance(config.get("max_length"), int):
        own = config["max_length"] - 1  # the decoder's first token is among them
    usual = own if isinstance(own, int) and own > 0 else _DEFAULT_NEW_TOKENS
    return usual if positions is None else max(min(usual, positions // 2), 1)


def _ids(config: Mapping[str, Any], field: str, name: str) -> tuple[int, ...]:
    """Return the token ids in a field with one id or a list of ids; a negative id of an old config means no token."""
    value = config.get(field)
    ids = [] if value is None else value if isinstance(value, list) else [value]
    if not all(isinstance(token, int) for token in ids):
        raise _wrong(field, value, name)
    return tuple(token for token in ids if token >= 0)


def _number(config: Mapping[str, Any], field: str, name: str) -> int:
    value = config.get(field) or 0
    if not isinstance(value, int) or value < 0:
        raise _wrong(field, value, name)
    return int(value)


def _penalty(config: Mapping[str, Any], name: str) -> float:
    value = config.get("repetition_penalty")
    if value is None:
        return 1.0
    if not isinstance(value, int | float) or value <= 0:
        raise _wrong("repetition_penalty", value, name)
    return float(value)


def _texts(value: Any) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value or ()
    return tuple(str(text) for text in texts if text)


def _wrong(field: str, value: Any, name: str) -> StepError:
    return StepError(f"{name} of the model has an invalid {field}", [repr(value)[:200]], "save the model again")
