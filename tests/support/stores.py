"""Stores to be filled and hurt."""

from __future__ import annotations

from engine.key import digest_of
from engine.store import output


def put(store, key, files, log=b"", job="x"):
    """Commit an artifact with these texts under a key."""
    with store.presence.workplace() as folder:
        out = folder / "out"
        out.mkdir()
        for name, text in files.items():
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        entries = output.take(out)
        report = {"n": 1}
        bound = output.binding(step="", key=digest_of(key), tree=output.tree(entries), report=report)
        return store.commit(
            key, out, entries, report=report, seconds=0.5, peak_bytes=7, machine={"os": "Linux"}, log=log, job=job,
            bound=bound,
        )  # fmt: skip


def pushed(store, key, files, **fields):
    """Commit an artifact, and push it to the remote behind the store."""
    record = put(store, key, files, **fields)
    store.tier.push(record)
    assert store.tier.wait() is None
    return record


def flip(path, chance):
    """Flip a bit of a file, in place."""
    raw = bytearray(path.read_bytes())
    raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
    path.chmod(0o644)
    path.write_bytes(raw)
