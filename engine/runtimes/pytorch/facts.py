"""Facts of the machine for PyTorch: the C++ compiler, with which torch.compile makes kernels."""

from __future__ import annotations

from engine.known import Known, fact, places_on_path
from engine.machine import programs

_COMPILER = "g++"


@fact("cxx.version")
def _compiler(_: object) -> Known:
    """Return the first line that the C++ compiler says of itself; "" where there is none."""
    done = programs.run([_COMPILER, "--version"], seconds=30)
    version = "" if done.returncode else done.stdout.partition("\n")[0]
    return Known(version, tuple(places_on_path(_COMPILER)), ("PATH",))
