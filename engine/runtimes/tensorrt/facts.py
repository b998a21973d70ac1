"""Facts of the machine for TensorRT: the installed version of TensorRT, and the major number of this version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.facts import FACTS, Fact, Known
from engine.machine import shared_libraries, tools

if TYPE_CHECKING:
    from engine.step import Hardware


def _version(hardware: Hardware | None) -> Known:
    """Return the version of the libraries that a job loads; else that of the Python package, which brings them."""
    package = tools.known("tensorrt")
    if hardware is None or hardware.libraries is None:
        return package
    library = shared_libraries.version(hardware.libraries.names[0])
    return Known(library.value or package.value, (*library.paths, *package.paths), library.variables)


def _major(_hardware: Hardware | None) -> Known:
    version = tools.known("tensorrt")
    return Known(version.value.partition(".")[0], version.paths)


FACTS["tensorrt.version"] = Fact(_version, describes_machine=True)
FACTS["tensorrt.major"] = Fact(_major, describes_machine=True)
