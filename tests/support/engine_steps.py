"""Steps around an engine that only a machine with its GPU can build, as small as they can be."""

from pathlib import Path
from typing import ClassVar

from engine.step import Device, Hardware, Step


class Graph(Step):
    """Made anywhere."""

    makes: ClassVar[str] = "checked"
    text: str = "graph"

    def run(self, out: Path) -> None:
        (out / "model").write_text(self.text)


class Compile(Step):
    """A step that runs on the GPU and gives other bytes each time."""

    makes: ClassVar[str] = "compiled"
    tools: ClassVar[tuple[str, ...]] = ("tensorrt",)
    reproducible: ClassVar[bool] = False
    rows: ClassVar[tuple[str, ...]] = ("device.name", "device.sm", "device.ecc", "os")
    gpu: str = "T4"
    version: str | None = "10.x"
    profile: int = 128

    def options(self):
        return {"profile": self.profile}

    def facts_used(self):
        return self.rows

    def hardware(self):
        return Hardware(devices=(Device(name=self.gpu, sm=75),), tool="tensorrt", version=self.version)

    def run(self, out: Path, *, checked: Path) -> None:
        import os

        (out / "engine").write_bytes(os.urandom(16))


class SameCapability(Compile):
    """A step whose output runs on every GPU of the same compute capability."""

    rows: ClassVar[tuple[str, ...]] = ("device.sm", "os")


class SameMajor(Compile):
    """A step whose output runs with every later version of the same major version."""

    tools: ClassVar[tuple[str, ...]] = ()
    rows: ClassVar[tuple[str, ...]] = ("device.name", "tensorrt.major")


class Try(Step):
    """A step that runs the engine on the GPU."""

    makes: ClassVar[str] = "tried"
    tools: ClassVar[tuple[str, ...]] = ("tensorrt", "pyyaml")
    facts: ClassVar[tuple[str, ...]] = ("device.name", "cpu.model")

    def hardware(self):
        return Compile().hardware()

    def run(self, out: Path, *, compiled: Path) -> None:
        (out / "engine").write_bytes((compiled / "engine").read_bytes())


class Pack(Step):
    """Made anywhere."""

    makes: ClassVar[str] = "packed"

    def run(self, out: Path, *, tried: Path) -> None:
        (out / "packed").write_bytes((tried / "engine").read_bytes())


class Recall(Step):
    """A step that depends on the CPU, like the last bits of the original model's outputs."""

    makes: ClassVar[str] = "recalled"
    facts: ClassVar[tuple[str, ...]] = ("cpu.isa",)
    text: str = "answers"

    def run(self, out: Path, *, checked: Path) -> None:
        from engine.machine import cpu

        (out / "answers").write_text(f"{self.text} of {cpu.model()}")


class Compare(Try):
    """A step that runs the engine and compares its outputs."""

    makes: ClassVar[str] = "tried"

    def run(self, out: Path, *, compiled: Path, recalled: Path) -> None:
        (out / "engine").write_bytes((compiled / "engine").read_bytes() + (recalled / "answers").read_bytes())


class HandOn(Step):
    """A step that reads the graph and hands it on unchanged, like a validation."""

    makes: ClassVar[str] = "checked"
    facts: ClassVar[tuple[str, ...]] = ("cpu.isa",)

    def run(self, out: Path, *, recalled: Path) -> None:
        (out / "answers").write_bytes((recalled / "answers").read_bytes())


class First(Recall):
    """A step like `Recall`, without inputs: its output is the text alone."""

    def run(self, out: Path) -> None:
        (out / "answers").write_text(self.text)
