"""What a runtime is made of: the names of the module `engine.runtimes`."""

from engine import runtimes as _own
from engine.runtimes import *  # noqa: F403 - this module hands on what the other one offers

__all__: list[str] = []
__all__ += _own.__all__
