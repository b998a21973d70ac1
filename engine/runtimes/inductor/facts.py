"""Facts of the machine for AOTInductor: the C++ compiler, the driver's major version, and the Triton language."""

from __future__ import annotations

import os
import re
import shutil

from engine.facts import FACTS, Fact, Known, places_on_path
from engine.machine import local_gpus, programs, tools

COMPILER = "g++"
"""The C++ compiler that AOTInductor calls, found on the PATH."""
NO_COMPILER = "missing"
_SECONDS = 20
_VERSION = re.compile(r"\S+\)? ([0-9]+\.[0-9.]+)")


def compiler() -> Known:
    """Return the version of the C++ compiler, or NO_COMPILER, with the files that another compiler would change."""
    path = shutil.which(COMPILER)
    done = programs.run([path or COMPILER, "--version"], seconds=_SECONDS)
    first = done.stdout.partition("\n")[0]
    match = _VERSION.search(first)
    version = NO_COMPILER if path is None or done.returncode else match[1] if match else first
    real = () if path is None else (os.path.realpath(path),)
    return Known(version, (*places_on_path(COMPILER), *real), ("PATH",))


def driver_major() -> Known:
    """Return the major version of NVIDIA's driver: "580" of 580.65.06; "none" without a driver."""
    return local_gpus.known(local_gpus.driver().partition(".")[0])


FACTS["cxx.version"] = Fact(lambda _: compiler())
FACTS["gpu.driver.major"] = Fact(lambda _: driver_major())
FACTS["triton_language.version"] = Fact(lambda _: tools.known("triton"))
