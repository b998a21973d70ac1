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


def of_pytorch(gpu: CudaGpu, *, consequence: str = "", otherwise: str = "") -> str:
    """Return PyTorch's name of a GPU, "cuda:0". Raises StepError where PyTorch cannot use the GPU.

    `consequence` ends the error, and `otherwise` its hint.
    """
    import torch

    if not torch.cuda.is_available():
        built = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "built without CUDA"
        raise StepError(
            f"PyTorch cannot use the {gpu.name}{consequence}",
            [f"torch {torch.__version__}, {built}"],
            f"install a torch that is built for the CUDA of the driver{otherwise}",
        )
    return f"cuda:{gpu.index}"
