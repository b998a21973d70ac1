"""User cache folders of test machines: empty, but for the bytecode of tools, which all machines of a run share."""

from contextlib import suppress
from pathlib import Path

from engine.store import user_cache

_SHARED = user_cache.folder() / "bytecode"


def with_bytecode(folder):
    """Make a value of XDG_CACHE_HOME: without shared bytecode, each machine would compile PyTorch for 15 s."""
    _SHARED.mkdir(parents=True, exist_ok=True)
    place = Path(folder) / "recipe"
    place.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        (place / "bytecode").symlink_to(_SHARED)
    return str(folder)
