"""Devices: chooses the GPU that a job computes on among the GPUs that CUDA shows this process."""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import StepError
from engine.gpus import with_capability
from engine.machine import cuda
from engine.step import Hardware


@dataclass(frozen=True)
class CudaGpu:
    """A GPU: its number in CUDA in this process, its name, its compute capability times ten, and its UUID."""

    index: int
    name: str
    sm: int
    uuid: str = ""


def chosen(hardware: Hardware) -> CudaGpu:
    """Return the first GPU of this machine that `hardware` names.

    The CUDA driver lists the GPUs, since runtimes ask the same driver: `nvidia-smi` or an installed package would not
    prove that a GPU can be used. Raises StepError where this machine has no CUDA driver, or none of the GPUs in
    `hardware`.
    """
    here = cuda.devices()
    for index, device in enumerate(here):
        if hardware.includes(device.name):
            return CudaGpu(index, device.name, device.sm, device.uuid)
    if not here:
        raise StepError(
            f"There is no GPU here that CUDA programs can use; the recipe's model runs on {hardware}",
            ["the CUDA driver (libcuda.so.1) cannot be loaded, or shows no device"],
            "run it on a machine with that GPU and NVIDIA's driver; CUDA_VISIBLE_DEVICES may hide one",
        )
    raise StepError(
        f"No GPU here is the recipe's: {hardware}",
        [f"CUDA shows {', '.join(with_capability(device.name, device.sm) for device in here)}"],
        "run it on a machine with that GPU, or change target.device",
    )
