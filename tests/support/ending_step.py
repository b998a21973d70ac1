"""A step whose module ends its process when it is imported."""

import os

from straying import Stray

os._exit(5)


class Ending(Stray):
    """The step."""
