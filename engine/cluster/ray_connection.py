"""The connection to a Ray cluster."""

from __future__ import annotations

import logging
import os
import socket
import warnings
from pathlib import Path
from typing import Any

from engine.errors import UsageError, UserError
from engine.text import distribution

SCHEME = "ray://"
_SECONDS = 5.0
_LARGEST_PORT = 65_535
_ATTEMPTS = 3
"""How often a build asks a Ray client server, which gives up where a busy head is slow to start a process for it."""
_INSTALL = distribution.install("cluster")
_TOKEN, _MODE = "RAY_AUTH_TOKEN", "RAY_AUTH_MODE"


def connected(address: str, *, namespace: str) -> Any:
    """Return the module `ray`, connected to a cluster: `auto`, or `ray://HOST:PORT` of a Ray client server.

    Raises UsageError for an address that is none, and UserError for a cluster that does not answer.
    """
    where = address.removeprefix(SCHEME)
    if not address.startswith(SCHEME) and address != "auto":
        raise UsageError(
            f"{address!r} is no address of a cluster", hint="--on ray://HOST:PORT, --on auto, or --on local"
        )
    os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"  # a call after the cluster has gone must not begin another one
    try:
        import ray
    except ImportError:
        raise UsageError("Ray is not installed", hint=f"{_INSTALL}, in the version of the cluster") from None
    if where != "auto":
        _refuse_silence(where)
    if _MODE not in os.environ and (_TOKEN in os.environ or (Path.home() / ".ray" / "auth_token").exists()):
        os.environ[_MODE] = "token"
    for _ in range(_ATTEMPTS):
        try:
            with warnings.catch_warnings(action="ignore"):  # the error below says what there is to say
                ray.init(
                    "auto" if where == "auto" else address,
                    namespace=namespace,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    configure_logging=False,
                )
        except Exception as error:  # noqa: BLE001 - Ray raises errors of many kinds
            refusal = error
            ray.shutdown()
            if where == "auto" or _is_silence(error):
                break
        else:
            return ray
    hints = ["`ray status` there says whether it runs; Ray and Python must have the versions of the cluster"]
    if _is_silence(refusal):
        hints.append(
            f"{_TOKEN}, or ~/.ray/auth_token, must have the token of the head; the port is the one of "
            "`--ray-client-server-port` (10001), not of `--port`"
        )
    what = f"the cluster {address} does not take this build"
    raise UserError(what, [first_line(refusal)], "; ".join(hints)) from None


def _is_silence(error: Exception) -> bool:
    """Say whether a Ray client has had no answer in several attempts, as with a wrong token or a wrong port.

    A server that answers and gives up makes a ConnectionAbortedError.
    """
    return type(error) is ConnectionError


def _refuse_silence(where: str) -> None:
    """Raise UserError for an address at which nobody listens: Ray itself waits for half a minute."""
    host, _, port = where.rpartition(":")
    if not host or not port.isdigit() or int(port) > _LARGEST_PORT:
        raise UsageError(
            f"{SCHEME}{where} is no address of a cluster", hint="--on ray://head:10001 names a host and a port"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), _SECONDS).close()
    except OSError as error:
        raise UserError(
            f"no cluster answers at {SCHEME}{where}",
            [str(error)],
            "the head node runs `ray start --head --ray-client-server-port PORT`; a firewall may be in the way",
        ) from None


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text that says something, or the name of the error's class."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
