"""Health: whether the server that was started answers, and the states of its models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.client.client import Client
from engine.client.model_metadata import ModelState
from engine.errors import StepError

_TIMEOUT = 5.0
"""Seconds to wait for a response of the server; few are enough, because the server runs on this machine."""


def is_there(address: str, name: str) -> bool:
    """Return whether the server called `name` answers over HTTP at ADDRESS:PORT.

    Triton answers once its models are loaded. Another server may take the port before Triton listens, and then answers
    with another name.
    """
    try:
        with _client(address) as client:
            return client.server_metadata().get("name") == name
    except (StepError, TypeError, ValueError):  # the response of another program may have any form
        return False


def version(address: str) -> str:
    """Return Triton's version. Raises StepError."""
    with _client(address) as client:
        return str(client.server_metadata().get("version", ""))


def states(address: str, expected: Sequence[str], unread: Mapping[str, str]) -> dict[str, ModelState]:
    """Return the state of each model of the server, and of each `expected` model that the server does not list.

    `unread` maps each model that the server could not read to the reason that the server's log gives. Raises StepError.
    """
    with _client(address) as client:
        states = client.states()
    missing = {
        name: ModelState("UNAVAILABLE", unread.get(name, "the server does not list it"))
        for name in expected
        if name not in states or not states[name].state
    }
    return states | missing


def _client(address: str) -> Client:
    return Client(f"http://{address}", timeout=_TIMEOUT)
