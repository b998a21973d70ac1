"""A machine whose driver and tool a test changes while the processes of a node run there."""

import os
import shutil

import fake_wheels
from fake_t4 import DRIVER, write_nvidia_smi
from ray_cluster import PYTHONPATH

TOOL = "1.0"
"""The version of the tool at first."""


class ChangingMachine:
    """A machine with a T4 and the tool of `OnT4`, in a folder that comes first on the paths of a node."""

    def __init__(self, folder):
        folder.mkdir()
        self.folder = folder
        self.variables = {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": f"{folder}:{PYTHONPATH}"}
        self.change(driver=DRIVER, tool=TOOL)

    def change(self, *, driver, tool):
        """Give the machine another driver, and another version of the tool as pip does it."""
        write_nvidia_smi(self.folder, driver=driver)
        for old in self.folder.glob("*.dist-info"):
            shutil.rmtree(old)
        files = {"toy_tool.py": f"VERSION = {tool!r}\n"}
        fake_wheels.install(self.folder, "toy-tool", tool, files, compiled=False)
