"""What tests of a step are made of: the names of the module `engine.testing`."""

from engine import testing as _own
from engine.testing import *  # noqa: F403 - this module hands on what the other one offers

__all__: list[str] = []
__all__ += _own.__all__
