"""Toy steps that need a GPU which no test machine has."""

import toy

from engine.runtimes.onnxruntime.providers import TENSORRT_LIBRARIES
from engine.step import Device, Hardware

T4 = Hardware(devices=(Device(name="T4", sm=75),), tool="tensorrt", version="10.x")
L4 = Hardware(devices=(Device(name="L4", sm=89),), tool="tensorrt", version="10.x")


class OnT4(toy.Shout):
    """Shouts on a T4."""

    def hardware(self):
        return T4


class OnL4(toy.Measure):
    """Measures on an L4."""

    def hardware(self):
        return L4


class WithTensorRT(toy.Measure):
    """Measures on a T4 with the libraries that the tool loads."""

    def hardware(self):
        return T4.model_copy(update={"libraries": TENSORRT_LIBRARIES})


class AlsoOnT4(toy.Measure):
    """Measures on a T4."""

    def hardware(self):
        return T4
