"""Device: the target of a new recipe, for a named GPU, a CPU, or this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import gpus
from engine.errors import UserError

if TYPE_CHECKING:
    from engine.drafts.draft import Draft

_CPU = "cpu"


def put(draft: Draft, name: str | None, *, generates: bool = False) -> bool:
    """Set target and precision for a device, None for this machine; tell whether it is a GPU. Raises UsageError."""
    if name is None:
        name, why = _here(generates=generates)
    else:
        why = "as --device names it"
    if name.lower() == _CPU:
        draft.put("target.device", _CPU, f"{why}; or a GPU: `recipe gpus`")
        draft.put("target.runtime", "onnxruntime", "or openvino; auto measures both and keeps the fastest")
        draft.put("precision", "fp32", "int8 is smaller and usually faster: try `--set precision=int8`")
        return False
    gpu = gpus.find(name)
    draft.put("target.device", gpu.name, f"SM{gpu.sm}, {gpu.memory_gib} GiB; {why}")
    draft.put("target.runtime", "tensorrt", "a machine with this GPU builds the engine")
    precisions = ", ".join(each for each in ("fp16", "bf16", "int8", "fp8", "int4") if _computes(gpu, each))
    draft.put("precision", "fp16", f"this GPU also builds with: fp32, {precisions.removeprefix('fp16, ')}")
    return True


def local_gpu() -> str | None:
    """Return the catalogue's name of this machine's GPU; None where there is none that the catalogue has."""
    from engine.machine import local_gpus

    known = (gpus.names.known(gpu.name) for gpu in local_gpus.gpus())
    return next((gpu.name for gpu in known if gpu is not None), None)


def _computes(gpu: gpus.Gpu, precision: str) -> bool:
    return precision in gpu.dtypes


def _here(*, generates: bool) -> tuple[str, str]:
    """Return the device of this machine, and why it is chosen: a GPU of the catalogue with TensorRT, or the CPU."""
    from engine.machine import imports, local_gpus

    name = next((gpu.name for gpu in local_gpus.gpus()), None)
    if name is None:
        return _CPU, "this machine shows no GPU"
    if generates:
        return _CPU, f"models that generate text are built for CPUs only (this machine has {name})"
    try:
        known = gpus.find(name)
    except UserError:
        return _CPU, f"the catalogue does not have this machine's {name}"
    if imports.location("tensorrt") is None:
        return _CPU, f"this machine has {known.name}, but not TensorRT"
    return known.name, "this machine's"
