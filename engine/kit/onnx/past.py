"""The past of a generating model: the names of the tensors that carry attention keys and values from call to call."""

from __future__ import annotations

PAST, PRESENT = "past_key_values", "present"
"""The first words in the names of inputs (PAST) and of outputs (PRESENT) that carry attention keys and values.

The output `present.0.key` of one call becomes the input `past_key_values.0.key` of the next call.
"""
OWN, CROSS = "decoder", "encoder"
"""The words in the names of a decoder's tensors that tell whose attention keys and values a tensor holds.

OWN marks the attention keys and values of the decoder's own tokens, CROSS those of the encoder's tokens.
"""


def carries(name: str | None) -> bool:
    """Whether an input of this name takes attention keys or values of earlier calls."""
    return (name or "").startswith(f"{PAST}.")


def names(prefix: str, layers: int, part: str | None = None) -> tuple[str, ...]:
    """Return names of attention keys and values, such as `present.0.key` or, with a part, `present.0.encoder.key`."""
    inner = "" if part is None else f"{part}."
    return tuple(f"{prefix}.{layer}.{inner}{kind}" for layer in range(layers) for kind in ("key", "value"))


def becoming(present: str) -> str:
    """Return the name of the input, such as `past_key_values.0.key`, that takes the last call's output `present`."""
    return PAST + present.removeprefix(PRESENT)
