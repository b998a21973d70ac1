"""The head of a Ray cluster: whether it answers, and whether it asks for a token."""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from typing import Any

from engine.errors import UsageError, UserError

SCHEME = "ray://"
_LARGEST_PORT = 65_535
_ANSWER_SECONDS = 10.0
"""How long a head may take to answer before a build."""
_SILENCE_SECONDS = 15.0
"""How long a head may be silent during a build: less than the minute after which Ray ends the whole program."""
_CLIENT = "recipe"
_MODE = "RAY_AUTH_MODE"
_TOKENS = (
    "RAY_AUTH_TOKEN, or the file of RAY_AUTH_TOKEN_PATH, or ~/.ray/auth_token, must have the token of the head: "
    "`ray get-auth-token` on the head prints it"
)
_SILENT = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "UNKNOWN")
"""What a head answers that has died or stopped: UNKNOWN is the failure of a client server that has lost its GCS."""


@dataclass(frozen=True)
class ClusterHead:
    """The head at `place`, HOST:PORT: that of its Ray client server, or of its own server (GCS).

    Ray's own connection waits for minutes where nobody answers, and says nothing of a head that lets everybody in.
    """

    shown: str
    place: str
    is_client_server: bool

    @classmethod
    def at(cls, address: str) -> ClusterHead:
        """Return the head of `auto` or of `ray://HOST:PORT`. Raises UsageError, and UserError without a cluster."""
        where = _usual_address() if address == "auto" else address
        place = where.removeprefix(SCHEME)
        host, _, port = place.rpartition(":")
        if not host or not port.isdigit() or int(port) > _LARGEST_PORT:
            example = "RAY_ADDRESS=head:6379" if address == "auto" else "--on ray://head:10001"
            raise UsageError(f"{where} is no address of a cluster", hint=f"{example} names a host and a port")
        return cls(address, place, is_client_server=where.startswith(SCHEME))

    @property
    def address(self) -> str:
        """The address for `ray.init`."""
        return SCHEME + self.place if self.is_client_server else self.place

    def enter(self) -> bool:
        """Let Ray offer a token if the head asks for one, and return whether it does. Raises UserError.

        A head that asks for no token is not given one.
        """
        _set_mode("disabled")
        status = self._status()
        if status != "UNAUTHENTICATED":
            return False
        if (lack := _lack_of_token()) is not None:
            raise UserError(
                f"the cluster {self.shown} asks for a token",
                [lack],
                _TOKENS,
            )
        _set_mode("token")
        if self._status() == "UNAUTHENTICATED":
            raise UserError(f"the cluster {self.shown} has another token than this machine", hint=_TOKENS)
        return True

    def look(self) -> None:
        """Raise ConnectionError if the head is silent for 15 seconds."""
        status, detail = self._ask(_SILENCE_SECONDS, waits=True)
        if status in _SILENT:
            raise ConnectionError(f"the head {self.place}: {detail}")

    def _status(self) -> str:
        """Return the gRPC status of an answer. Raises UserError for a silent head, and for another server."""
        status, detail = self._ask(_ANSWER_SECONDS)
        if status in _SILENT:
            raise UserError(
                f"no cluster answers at {self.address}",
                [detail],
                "`ray status` on the head says whether it runs; a firewall may be in the way, or a head with TLS: "
                "docs/cluster.md",
            )
        if status not in ("OK", "UNAUTHENTICATED"):
            ports = "`--ray-client-server-port` (10001)", "`--port` (6379)"
            right, wrong = ports if self.is_client_server else reversed(ports)
            raise UserError(
                f"what answers at {self.address} is no {'Ray client server' if self.is_client_server else 'head'}",
                [f"{status}: {detail}"],
                f"the port is the one of {right}, not of {wrong}",
            )
        return status

    def _ask(self, seconds: float, *, waits: bool = False) -> tuple[str, str]:
        """Return the status of the head's answer and its details; `waits` tries again until the time is over."""
        import grpc  # type: ignore[import-untyped]
        from ray._private import ray_constants
        from ray._private.grpc_utils import init_grpc_channel  # with TLS and the token, if there are
        from ray.core.generated import gcs_service_pb2, gcs_service_pb2_grpc, ray_client_pb2, ray_client_pb2_grpc

        with init_grpc_channel(self.place, options=ray_constants.GLOBAL_GRPC_OPTIONS) as channel:
            call: Any
            if self.is_client_server:
                call = ray_client_pb2_grpc.RayletDriverStub(channel).KVExists  # it asks the GCS, as a ping does not
                question = ray_client_pb2.KVExistsRequest(key=_CLIENT.encode())
            else:
                call = gcs_service_pb2_grpc.NodeInfoGcsServiceStub(channel).CheckAlive
                question = gcs_service_pb2.CheckAliveRequest()
            try:
                call(question, timeout=seconds, wait_for_ready=waits, metadata=[("client_id", _CLIENT)])
            except grpc.RpcError as error:
                if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                    return error.code().name, f"no answer within {seconds:.0f} s"
                return error.code().name, str(error.details()).rpartition("last error: ")[2]
        return "OK", ""


def _usual_address() -> str:
    """Return the address of the cluster of this machine, or that of RAY_ADDRESS. Raises UserError."""
    from ray._private import services

    try:
        return str(services.get_ray_address_from_environment("auto", None))
    except ConnectionError:
        raise UserError(
            "there is no cluster on this machine", hint="`ray start` begins one; RAY_ADDRESS names one elsewhere"
        ) from None


def _set_mode(mode: str) -> None:
    """Let Ray use tokens, or not. Ray reads the variable when it is imported, and never again by itself."""
    os.environ[_MODE] = mode
    _raylet().Config.initialize("")


def _lack_of_token() -> str | None:
    """Return why Ray has no token on this machine, or none that can be sent; or None."""
    variables = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
    place = next((name for name in variables if os.environ.get(name)), "~/.ray/auth_token")
    try:
        token = _raylet().AuthenticationTokenLoader.instance().get_raw_token(ignore_auth_mode=True)
        is_sendable = token.isascii() and token.isprintable()
    except UnicodeDecodeError:
        token, is_sendable = "?", False
    except Exception as error:  # noqa: BLE001 - a file that cannot be read, for which Ray has several classes
        return str(error).partition(". Note: ")[0]
    if not is_sendable:
        return f"the token of {place} has a byte that no token has: a token is printable ASCII, in one line"
    return None if token else "this machine has none"


def _raylet() -> Any:
    """Return Ray's compiled module, of which type checkers know nothing."""
    return importlib.import_module("ray._raylet")
