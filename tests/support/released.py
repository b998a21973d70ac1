"""A store with a package, as the step `package` leaves it, for tests of what is published again."""

import hashlib
import shutil

from published import write

from engine.key import digest_of
from engine.publishing import package
from engine.store import output
from engine.store.store import Store

STEP = "engine.steps.package:Package"


def key_of(add):
    """Return the rows of the key of the package that adds `add`."""
    return {"code": "c", "options.add": str(add)}


def put(root, add, *, tag="", **changes):
    """Put a package into a store, and return its record; `tag` makes other bytes for the same key."""
    store = Store(root)
    with store.presence.workplace() as folder:
        write(folder / "out", add=add, **changes)
        (folder / "out" / "Dockerfile").write_text("FROM nothing\n")
        if tag:
            (folder / "out" / "films_first" / "1" / "tag").write_text(tag)
        files = output.take(folder / "out")
        rows, report = key_of(add), {"models": []}
        bound = output.binding(step=STEP, key=digest_of(rows), tree=output.tree(files), report=report)
        record = store.commit(
            rows, folder / "out", files, report=report, seconds=1.0, peak_bytes=1, machine={}, job="package",
            step=STEP, bound=bound,
        )  # fmt: skip
    store.leave()
    return record


def sha256_of(root, record):
    """Return the SHA-256 of the package in a store."""
    return package.read(Store(root).artifact_path(record.artifact), recipe="films", key="k").sha256


def hide(root):
    """Remove a store, as on a laptop that has none."""
    shutil.rmtree(root)


def sha256(path):
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
