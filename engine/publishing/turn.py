"""Turns: of all publishers of a package, one at a time changes what is served."""

# A turn is an object with a number, created and never overwritten; the highest number has the turn. A turn that shows
# no change for a while belongs to a killed publisher: the next publisher creates the next number. Whoever was only slow
# sees before each write that the turn is lost, and stops. No clock of another machine is compared.

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engine.errors import StoreError
from engine.publishing.repository import ModelRepository

LEASE = 30.0
"""Seconds after which a turn that its holder has not given back is taken from it."""
_HOLD = LEASE / 2
"""Seconds for which a holder writes at most."""
_LOOK = 0.2


class Turn:
    """A publisher's right to change what a package serves."""

    def __init__(self, repository: ModelRepository, package: str, number: int, token: bytes) -> None:
        self._repository, self._package, self._number, self._token = repository, package, number, token
        self._end = time.monotonic() + _HOLD

    async def write(self, name: str, data: bytes) -> None:
        """Write an object while the turn lasts. Raises StoreError for a turn that is lost."""
        newest = max(await _numbers(self._repository, self._package), default=0)
        is_ours = newest == self._number and await self._lease() == self._token
        if not is_ours or time.monotonic() > self._end:
            raise StoreError(
                f"{self._repository.shown}: another publisher of {self._package} has taken over",
                ["this one was slow for a while"],
                "publish again",
            )
        await self._repository.write(name, data)

    async def _lease(self) -> bytes | None:
        return await self._repository.read(_name(self._package, self._number))


@asynccontextmanager
async def turn(repository: ModelRepository, package: str, lease: float) -> AsyncIterator[Turn]:
    """Wait for the turn of a package, and give it back when the block ends."""
    holder = {"host": socket.gethostname(), "process": os.getpid(), "token": secrets.token_hex(8)}
    token = json.dumps(holder).encode()
    number = await _taken(repository, package, token, lease)
    try:
        yield Turn(repository, package, number, token)
    finally:
        if await repository.read(_name(package, number)) == token:
            for each in sorted(await _numbers(repository, package)):
                if each <= number:
                    await repository.remove(_name(package, each))


async def _taken(repository: ModelRepository, package: str, token: bytes, lease: float) -> int:
    """Create the next turn as soon as there is no other, or the other one has not changed for `lease` seconds."""
    seen: bytes | None = None
    since = time.monotonic()
    while True:
        newest = max(await _numbers(repository, package), default=0)
        holder = await repository.read(_name(package, newest)) if newest else None
        if holder is None or (holder == seen and time.monotonic() - since > lease):
            if await repository.create(_name(package, newest + 1), token):
                return newest + 1
        elif holder != seen:
            seen, since = holder, time.monotonic()
        await asyncio.sleep(_LOOK)


async def _numbers(repository: ModelRepository, package: str) -> list[int]:
    pattern = re.compile(rf"\.recipe\.{re.escape(package)}\.turn\.([1-9][0-9]*)")
    listing = await repository.listing()
    return [int(match[1]) for match in map(pattern.fullmatch, listing.entries) if match]


def _name(package: str, number: int) -> str:
    return f".recipe.{package}.turn.{number}"
