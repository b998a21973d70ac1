"""A real Triton server: which one is here, and starting, watching and stopping it."""

from engine.server.find import find
from engine.server.found import Found, Kind
from engine.server.needs import Needs, needs_of
from engine.server.ports import Ports
from engine.server.server import Server, start

__all__ = ["Found", "Kind", "Needs", "Ports", "Server", "find", "needs_of", "start"]
