"""A real Triton server: find one on this machine, start it, watch it and stop it."""

from engine.server.find import find
from engine.server.installation import Installation, Kind
from engine.server.needs import Needs, needs_of
from engine.server.ports import Ports
from engine.server.server import Server, start

__all__ = ["Installation", "Kind", "Needs", "Ports", "Server", "find", "needs_of", "start"]
