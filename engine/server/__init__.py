"""A real Triton server: which one is here, and starting, watching and stopping it."""

from engine.kit.serving.find import find
from engine.kit.serving.found import Found, Kind
from engine.kit.serving.needs import Needs, needs_of
from engine.kit.serving.ports import Ports
from engine.kit.serving.server import Server, start

__all__ = ["Found", "Kind", "Needs", "Ports", "Server", "find", "needs_of", "start"]
