"""What a TensorRT engine depends on of the version that built it: all of it, or the major number alone."""

from engine.known import FACTS, Fact, Known
from engine.machine import tools


def _major() -> Known:
    found = tools.known("tensorrt")
    return Known(found.value.partition(".")[0], found.paths)


FACTS["tensorrt.version"] = Fact(lambda _: tools.known("tensorrt"), describes_machine=True)
FACTS["tensorrt.major"] = Fact(lambda _: _major(), describes_machine=True)
