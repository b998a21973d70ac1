"""A store with a package, as the step `package` leaves it, for tests of what is published again."""

from published import write

from engine.key import digest_of
from engine.publishing import package
from engine.store import output
from engine.store.store import Store

STEP = "engine.steps.package:Package"


def key_of(add):
    """Return the rows of the key of the package that adds `add`."""
    return {"code": "c", "options.add": str(add)}


def put(root, add, *, tag="", beside="", **changes):
    """Put a package into a store, and return its record.

    `tag` makes other bytes for the same key; `beside` is a file beside the versions of a model.
    """
    store = Store(root)
    with store.presence.workplace() as folder:
        write(folder / "out", add=add, **changes)
        (folder / "out" / "Dockerfile").write_text("FROM nothing\n")
        if tag:
            (folder / "out" / "films_first" / "1" / "tag").write_text(tag)
        if beside:
            (folder / "out" / "films_first" / beside).write_text("")
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
