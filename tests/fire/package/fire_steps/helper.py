"""What a step leaves to a module of its own package."""

from collections.abc import Sequence

MARK = "+"


def joined(texts: Sequence[str]) -> str:
    """Return all texts in one."""
    return f" {MARK} ".join(texts)
