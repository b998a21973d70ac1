"""Hardware: the GPUs that a job may run on, and the Python packages that drive them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from engine import gpus
from engine.gpus.libraries import Libraries


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class Device(_Frozen):
    """A kind of GPU: its name in the catalogue, and its compute capability times ten."""

    name: str
    sm: int


class Driver(_Frozen):
    """The Python package that drives a GPU for a runtime, and its suitable versions; None for any version."""

    runtime: str
    tool: str
    version: str | None = None


class Hardware(_Frozen):
    """The hardware that a job must run on: any one of the GPUs, and the Python packages that drive the GPU."""

    devices: tuple[Device, ...]
    tool: str
    """The name of the installed distribution for the GPU: `tensorrt`, `tensorrt_rtx` or `onnxruntime-gpu`."""
    version: str | None = None
    """The suitable versions of the tool, as recipes write them: "10.x"; None for any version."""
    libraries: Libraries | None = Field(default=None, exclude=True)
    """The shared libraries that the tool loads and does not bring. No options of steps: they follow from those."""

    drivers: tuple[Driver, ...] = Field(default=(), exclude_if=lambda drivers: not drivers)
    """What drives the GPU for each runtime that may run the model; empty for one runtime, whose package `tool` is."""

    @property
    def each(self) -> tuple[Hardware, ...]:
        """The hardware with one package in each, for all packages that the job needs."""
        return tuple(dict.fromkeys(self.driven_for(each.runtime) for each in self.drivers)) or (self,)

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of all packages that drive the GPU for the job."""
        return tuple(each.tool for each in self.each)

    def driven_for(self, runtime: str) -> Hardware:
        """Return the hardware with the package of one of the runtimes that may run the model."""
        own = next(each for each in self.drivers if each.runtime == runtime)
        return self.model_copy(update={"tool": own.tool, "version": own.version, "drivers": ()})

    def includes(self, gpu: str) -> bool:
        """Return whether a GPU, by the name that its driver reports, is one of the GPUs that a job may run on."""
        return any(gpus.matches(gpu, device.name) for device in self.devices)

    def __str__(self) -> str:
        names = " or ".join(gpus.with_capability(device.name, device.sm) for device in self.devices)
        tools = " and ".join(f"{each.tool} {each.version}" if each.version else each.tool for each in self.each)
        libraries = f" and {self.libraries.title}" if self.libraries else ""
        return f"{names} with {tools}{libraries}"
