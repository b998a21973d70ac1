"""Files that are mapped into this process, which shows what native code opened."""

from __future__ import annotations

import re

_PATH = re.compile(rb"/.*")


def files() -> frozenset[str]:
    """Return the paths of the files that are mapped into this process; none outside Linux."""
    try:
        with open("/proc/self/maps", "rb") as maps:
            paths = set(_PATH.findall(maps.read()))
    except OSError:
        return frozenset()
    return frozenset(path.decode("utf-8", "surrogateescape") for path in paths if not path.endswith(b"(deleted)"))
