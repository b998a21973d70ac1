"""Damage to the objects of a remote, on whatever server it lies: what a rule, a person or a disk may do to them."""

import asyncio
import os

from engine.store.remote import objects, remotes
from engine.store.remote.objects import BLOBS, RECORDS


def _with(url, environ, work):
    async def run():
        remote = remotes.remote_of(url, environ={**os.environ, **(environ or {})}, writes=True)
        try:
            return await work(remote)
        finally:
            await remote.close()

    return asyncio.run(run())


def names(url, environ=None, *, folder=objects.VERSION):
    """Return the names of the objects in a folder of a remote."""

    async def work(remote):
        return sorted([entry.name async for entry in remote.list(folder)])

    return _with(url, environ, work)


def change(url, environ=None, *, folder=objects.VERSION, by=None, of=lambda _: True):
    """Remove the objects of a folder, or write `by(bytes)` over them; return how many there were."""

    async def work(remote):
        every = [entry async for entry in remote.list(folder)]
        chosen = [entry for entry in every if of(entry.name)]
        for entry in chosen:
            if by is None:
                await remote.remove(entry.name)
            else:
                await remote.write(entry.name, by(await remote.read(entry.name, most=entry.size)))
        return len(chosen)

    return _with(url, environ, work)


DAMAGES = {
    "all is gone": {},
    "the records are gone": {"folder": RECORDS},
    "the blobs are gone": {"folder": BLOBS},
    "the blobs are cut": {"folder": BLOBS, "by": lambda raw: raw[: len(raw) // 2]},
    "the blobs have other bytes": {"folder": BLOBS, "by": lambda raw: bytes([raw[0] ^ 1]) + raw[1:]},
    "the records have other bytes": {"folder": RECORDS, "by": lambda raw: raw[: len(raw) // 2]},
}
