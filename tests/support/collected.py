"""A remote that is collected and checked, and its objects as files that can be made older."""

import asyncio
import os
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

from engine.store.remote import attempts, remotes, upkeep
from engine.store.remote.attempts import RetryingRemote

DAY = 86400.0


def remote_of(remote, *, writes=True):
    return remotes.remote_of(remote.url, environ=remote.writer if writes else remote.reader, writes=writes)


def ask(place, request, *words, **options):
    """Run a function of `upkeep` with a place."""

    async def run():
        try:
            return await request(RetryingRemote(place, attempts.brief()), *words, **options)
        finally:
            await place.close()

    return asyncio.run(run())


def collect(remote, *, older_than, dry_run=False, grace=0.0):
    return ask(remote_of(remote), upkeep.collect, older_than=older_than, dry_run=dry_run, grace=grace)


def check(remote, trust, *, deep=False):
    return ask(remote_of(remote, writes=False), upkeep.check, trust, deep=deep)


def files_of(remote, kind):
    every = [path for path in (Path(unquote(urlsplit(remote.url).path)) / kind).rglob("*") if path.is_file()]
    assert every
    return every


def make_older(paths, seconds):
    then = time.time() - seconds
    for path in paths:
        os.utime(path, (then, then))
