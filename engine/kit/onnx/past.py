"""The past of a generating model: the names of the tensors that carry keys and values from call to call."""

from __future__ import annotations

PAST, PRESENT = "past_key_values", "present"
"""The first words in the names of inputs (PAST) and of outputs (PRESENT) that carry keys and values.

The output `present.0.key` of one call becomes the input `past_key_values.0.key` of the next call.
"""
OWN, CROSS = "decoder", "encoder"
"""The words in the names of a decoder's keys and values.

OWN marks keys and values of the decoder's own tokens, CROSS marks keys and values of the encoder's tokens.
"""


def names(prefix: str, layers: int, part: str | None = None) -> tuple[str, ...]:
    """Return the names of keys and values, layer by layer: `present.0.key`, or with a part `present.0.encoder.key`."""
    inner = "" if part is None else f"{part}."
    return tuple(f"{prefix}.{layer}.{inner}{kind}" for layer in range(layers) for kind in ("key", "value"))


def becoming(present: str) -> str:
    """Return the name of the input that takes the last call's output `present`, such as `past_key_values.0.key`."""
    return PAST + present.removeprefix(PRESENT)
