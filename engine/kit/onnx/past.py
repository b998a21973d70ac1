"""The past of a generating model: the names of the tensors that carry keys and values from call to call."""

from __future__ import annotations

PAST, PRESENT = "past_key_values", "present"
"""The first word of inputs and of outputs with keys and values: an output becomes an input of the next call."""
OWN, CROSS = "decoder", "encoder"
"""The part of a decoder's keys and values that belongs to its own tokens, and the part of the encoder's tokens."""


def names(prefix: str, layers: int, part: str | None = None) -> tuple[str, ...]:
    """Return the names of keys and values, layer by layer: `present.0.key`, or with a part `present.0.encoder.key`."""
    inner = "" if part is None else f"{part}."
    return tuple(f"{prefix}.{layer}.{inner}{kind}" for layer in range(layers) for kind in ("key", "value"))


def becoming(present: str) -> str:
    """Return the name of the input that takes an output of the last call: `past_key_values.0.key`."""
    return PAST + present.removeprefix(PRESENT)
