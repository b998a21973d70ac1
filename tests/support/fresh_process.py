"""What a process remembers of installed packages, forgotten, so that builds inside of a test process begin afresh."""

from engine import plugins
from engine.builder import registry
from engine.machine import tools


def forget():
    """Forget what earlier tests of this process, with other packages on the import path, looked up.

    A process that saw a package change keeps no snapshot, and each build of the command line is a process of its own.
    """
    for remembered in (registry.steps, plugins._entry_points, tools._behind):
        remembered.cache_clear()
    tools._versions.clear()
