"""A machine with a T4 and TensorRT, as the whole program sees it: all fakes together in an environment of their own."""

import subprocess
import sys
import sysconfig
from pathlib import Path

from program import Program

SUPPORT = Path(__file__).parent
_NVIDIA_SMI = """#!/bin/sh
case "$*" in
  *clocks*) echo "Tesla T4, 580.65.06, 1590, 1590, 5000, 40" ;;
  *query-gpu=driver_version*) echo 580.65.06 ;;
  *) echo "Tesla T4, 7.5, 15360, 580.65.06" ;;
esac
"""


class FakeT4(Program):
    """Runs `recipe` in a project folder on the fake machine, whose files lie in `place`."""

    def __init__(self, folder, place):
        super().__init__(folder)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "venv"], check=True)
        [packages] = place.glob("venv/lib/python*/site-packages")
        paths = [SUPPORT.parent.parent, SUPPORT / "fake_tensorrt", sysconfig.get_path("purelib")]
        (packages / "fake.pth").write_text("".join(f"{path}\n" for path in paths) + "import fake_machine\n")
        (place / "bin").mkdir()
        (place / "bin" / "nvidia-smi").write_text(_NVIDIA_SMI)
        (place / "bin" / "nvidia-smi").chmod(0o755)
        self.python = place / "venv" / "bin" / "python"
        self.environment["PATH"] = f"{place / 'bin'}:{self.environment['PATH']}"
        self.environment.pop("PYTHONPATH", None)

    def __call__(self, *words, expect=None):
        """Run a command line there, and hold its exit code against what is expected."""
        command = [self.python, "-m", "engine", *words]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=600, check=False
        )
        assert expect in (None, done.returncode), f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done
