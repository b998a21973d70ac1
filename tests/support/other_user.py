"""Another user of this machine, for tests that run as root."""

import subprocess
import sys

import pytest

NOBODY = 65534


def python_of(user):
    """Return a Python of this version that another user may run. The tests' own may lie in a home folder."""
    for name in (sys.executable, f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}"):
        try:
            code = "import sys; print(sys.version_info[:2])"
            done = subprocess.run([name, "-c", code], user=user, capture_output=True, text=True, check=False, cwd="/")
        except OSError:
            continue
        if done.stdout.strip() == str(sys.version_info[:2]):
            return name
    pytest.skip("no Python of this version that another user may run")
