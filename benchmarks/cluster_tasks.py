"""Plain Ray tasks that move bytes in a remote, beside which cluster_jobs.py measures jobs. Nodes import this file."""

from __future__ import annotations

import functools
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.store.store import Store

_FORKS = """
import os, sys
import engine.step
for _ in sys.stdin.buffer:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    os.write(1, b".")
"""
"""A program that has loaded what every step needs. For each line, it forks a child that ends at once, and answers."""


def moved(remote: str, reads: str, writes: str, data: bytes, after: object = None) -> None:
    """Read one object, if it has a name, and write another."""
    import obstore
    from obstore.store import LocalStore

    del after
    store = LocalStore(remote, mkdir=True)
    if reads:
        bytes(obstore.get(store, reads).bytes())
    if writes:
        obstore.put(store, writes, data)


def stored(remote: str, reads: str, writes: str, data: bytes, after: object = None) -> None:
    """Take one artifact from the remote, if it has a name, and push another: by the node's store, as jobs do."""
    from engine.cluster.orders import filed, pushed

    del remote, data, after
    store = _store()
    assert store.tier is not None
    if reads:
        store.tier.look_again()
        record = store.find(_key(reads))
        assert record is not None
        assert store.bring(record)
        (store.artifact_path(record.artifact) / _FILE).read_text()
    if writes:
        with store.presence.workplace() as folder:
            out = folder / "out"
            out.mkdir()
            (out / _FILE).write_text(writes)
            record = filed(store, _key(writes), out)
        error = pushed(store.tier, [record])
        assert error is None, error


_FILE = "number"


def _key(name: str) -> dict[str, str]:
    return {"name": name}


@functools.cache
def _store() -> Store:
    """The store of this process's node, with its remote."""
    from engine.cluster.node import NodeStore

    return NodeStore().store


def forked_and_moved(remote: str, reads: str, writes: str, data: bytes, after: object = None) -> None:
    """Wait for an empty fork of another process, and move the bytes."""
    program = _program()
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write(b"\n")
    assert program.stdout.read(1) == b"."
    moved(remote, reads, writes, data, after)


@functools.cache
def _program() -> subprocess.Popen[bytes]:
    """The program of this process. It ends with its input, which ends with this process."""
    return subprocess.Popen([sys.executable, "-c", _FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
