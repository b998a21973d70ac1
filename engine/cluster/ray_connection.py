"""The connection to a Ray cluster."""

from __future__ import annotations

import logging
import os
import warnings
from typing import Any

from engine.cluster.head import SCHEME, ClusterHead
from engine.errors import UsageError, UserError
from engine.text import distribution

_ATTEMPTS = 3
"""How often a build asks a Ray client server, which gives up where a busy head is slow to start a process for it."""
_INSTALL = distribution.install("cluster")
OPEN = (
    "the head of {} asks for no token: whoever reaches its ports can run any program on its nodes. "
    "hint: `ray get-auth-token --generate`, and RAY_AUTH_MODE=token for each `ray start`: docs/cluster.md"
)


def connected(address: str, *, namespace: str) -> tuple[Any, ClusterHead, str]:
    """Return the module `ray`, connected to a cluster; its head; and a warning about the head, or "".

    The address is `auto`, or `ray://HOST:PORT` of a Ray client server.

    Raises UsageError for an address that is none, and UserError for a cluster that does not answer.
    """
    if not address.startswith(SCHEME) and address != "auto":
        raise UsageError(
            f"{address!r} is no address of a cluster", hint="--on ray://HOST:PORT, --on auto, or --on local"
        )
    os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"  # a call after the cluster has gone must not begin another one
    os.environ["RAY_DEDUP_LOGS_SKIP_REGEX"] = "^"  # stdout is the build's: Ray writes about dead nodes there
    try:
        import ray
    except ImportError:
        raise UsageError("Ray is not installed", hint=f"{_INSTALL}, in the version of the cluster") from None
    head = ClusterHead.at(address)
    warning = "" if head.enter() else OPEN.format(address)
    for _ in range(_ATTEMPTS):
        try:
            with warnings.catch_warnings(action="ignore"):  # the error below says what there is to say
                ray.init(
                    head.address,
                    namespace=namespace,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    configure_logging=False,
                )
        except Exception as error:  # noqa: BLE001 - Ray raises errors of many kinds
            refusal = error
            ray.shutdown()
            if not head.is_client_server:
                break
        else:
            return ray, head, warning
    hint = "`ray status` there says whether it runs; Ray and Python must have the versions of the cluster"
    raise UserError(f"the cluster {address} does not take this build", [first_line(refusal)], hint) from None


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text that says something, or the name of the error's class."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
