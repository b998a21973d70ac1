"""What a task is made of: the names of the module `engine.tasks`."""

from engine import tasks as _own
from engine.tasks import *  # noqa: F403 - this module hands on what the other one offers

__all__: list[str] = []
__all__ += _own.__all__
