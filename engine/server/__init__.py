"""A real Triton server: find one on this machine, start it, watch it and stop it."""

from typing import TYPE_CHECKING

from engine.system import late

if TYPE_CHECKING:
    from engine.server.discovery import find
    from engine.server.installation import Installation, Kind
    from engine.server.ports import Ports
    from engine.server.repository_needs import Needs, needs_of
    from engine.server.server import Server, start

__all__ = ["Installation", "Kind", "Needs", "Ports", "Server", "find", "needs_of", "start"]

__getattr__ = late.names(
    __name__,
    discovery="find",
    installation="Installation Kind",
    repository_needs="Needs needs_of",
    ports="Ports",
    server="Server start",
)
