"""Files that are mapped into this process, which shows what native code opened."""

from __future__ import annotations


def files() -> frozenset[str]:
    """Return the paths of the files that are mapped into this process; none outside Linux."""
    try:
        with open("/proc/self/maps", "rb") as maps:
            lines = maps.read().split(b"\n")
    except OSError:
        return frozenset()
    paths = {line[line.find(b"/") :] for line in lines if b"/" in line}
    return frozenset(path.decode("utf-8", "surrogateescape") for path in paths if not path.endswith(b"(deleted)"))
