"""What a step is made of: the names of the module `engine.step`."""

from engine import step as _own
from engine.step import *  # noqa: F403 - this module hands on what the other one offers

__all__: list[str] = []
__all__ += _own.__all__
