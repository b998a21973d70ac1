"""The past of a generating model: what the tensors are called that carry keys and values from call to call."""

from __future__ import annotations

PAST, PRESENT = "past_key_values", "present"
"""What a graph takes and what it gives; the one becomes the other from call to call."""
OWN, CROSS = "decoder", "encoder"
"""Of a decoder behind an encoder: keys and values of its own tokens, and those of the encoder's."""


def names(prefix: str, layers: int, part: str | None = None) -> tuple[str, ...]:
    """Return the names of keys and values, layer by layer: `present.0.key`, or `present.0.encoder.key` of a part."""
    inner = "" if part is None else f"{part}."
    return tuple(f"{prefix}.{layer}.{inner}{kind}" for layer in range(layers) for kind in ("key", "value"))


def becoming(present: str) -> str:
    """Return the name under which an output goes into the next call."""
    return PAST + present.removeprefix(PRESENT)
