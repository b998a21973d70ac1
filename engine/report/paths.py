"""Paths as a build prints them."""

from __future__ import annotations

import os
from pathlib import Path


def shown(path: Path) -> str:
    """Return a path as users type it: a relative path where it is below the working directory."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
