"""Facts of the machine for TensorRT: the installed version of TensorRT, and the major number of this version."""

from engine.known import FACTS, Fact, Known
from engine.machine import tools


def _major() -> Known:
    version = tools.known("tensorrt")
    return Known(version.value.partition(".")[0], version.paths)


FACTS["tensorrt.version"] = Fact(lambda _: tools.known("tensorrt"), describes_machine=True)
FACTS["tensorrt.major"] = Fact(lambda _: _major(), describes_machine=True)
