"""Facts of the machine for ONNX Runtime: which of ONNX Runtime's distributions is installed."""

from engine.facts import FACTS, Fact
from engine.machine import tools

FACTS["onnxruntime.build"] = Fact(lambda _: tools.build("onnxruntime"), describes_machine=True)
