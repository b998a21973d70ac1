"""What a running server says of itself and its models, over plain HTTP (KServe v2)."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.errors import StepError

_SECONDS = 5.0
_OPEN = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Without the proxies of the environment: it is this machine that is asked."""


@dataclass(frozen=True)
class State:
    """How a model is: READY, or Triton's word for why not, and its reason."""

    state: str
    reason: str = ""

    @property
    def ready(self) -> bool:
        """Whether it answers."""
        return self.state == "READY"


def is_there(server: str, name: str) -> bool:
    """Tell whether the server of that name answers at ADDRESS:PORT: Triton does once it has loaded its models.

    Until then the port is not its own yet: another server may take it, and answer there.
    """
    try:
        said = json.loads(_ask(server, "/v2"))
    except (StepError, ValueError):
        return False
    return isinstance(said, dict) and said.get("name") == name


def version(server: str) -> str:
    """Return Triton's version. Raises StepError."""
    return str(json.loads(_ask(server, "/v2")).get("version", ""))


def states(server: str, expected: Sequence[str], unread: Mapping[str, str]) -> dict[str, State]:
    """Return each model's state; `unread` are those that the server could not even read, with its reasons."""
    said = {each["name"]: each for each in json.loads(_ask(server, "/v2/repository/index", b"{}"))}
    found = {name: State(str(each.get("state", "")), str(each.get("reason", ""))) for name, each in said.items()}
    missing = {
        name: State("UNAVAILABLE", unread.get(name, "the server does not list it"))
        for name in expected
        if name not in found or not found[name].state
    }
    return found | missing


def _ask(server: str, path: str, body: Any = None) -> bytes:
    try:
        with _OPEN.open(urllib.request.Request(f"http://{server}{path}", body), timeout=_SECONDS) as answer:
            said: bytes = answer.read()
    except (OSError, urllib.error.URLError, http.client.HTTPException) as error:
        raise StepError(f"the server at {server} does not answer", [f"{path}: {error}"]) from error
    return said
