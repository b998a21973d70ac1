"""Programs that measure something on a GPU with PyTorch, each in a process of its own; each prints a line of JSON.

python tests/support/gpu_probe.py peaks
python tests/support/gpu_probe.py kernels FOLDER_OF_THE_BUILT_MODEL EXECUTION BATCH SEQUENCE
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2])]

_SIDE = 8192
"""The side of the matrices, whose product takes about a millisecond on the fastest GPUs."""
_BYTES = 1 << 30
_TIMES = 20


def peaks() -> dict[str, float]:
    """Measure the products and the copies that the GPU does in a second, as the best of several."""
    import torch

    one, other = (torch.randn(_SIDE, _SIDE, dtype=torch.float16, device="cuda") for _ in range(2))
    source = torch.empty(_BYTES, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return {
        "flops_per_s": 2 * _SIDE**3 / _seconds(lambda: torch.mm(one, other)),
        "bytes_per_s": 2 * _BYTES / _seconds(lambda: target.copy_(source)),
    }


def _seconds(call) -> float:
    """Return the shortest time of a call on the GPU, by CUDA events."""
    import torch

    times = []
    for _ in range(_TIMES):
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        began.record()
        call()
        ended.record()
        torch.cuda.synchronize()
        times.append(began.elapsed_time(ended) / 1e3)
    return min(times)


def kernels(folder: str, execution: str, batch: str, sequence: str) -> dict[str, float]:
    """Count the kernels of one call of a built model, and the milliseconds that they take together."""
    import numpy as np
    import torch
    from torch.profiler import ProfilerActivity, profile

    from engine.runtimes.execution import Execution
    from engine.text import canonical

    how = canonical.decode(Execution, json.loads(execution)).of_model(Path(folder))
    shape = int(batch), int(sequence)
    inputs = {name: np.ones(shape, np.int64) for name in ("input_ids", "attention_mask")}
    inputs["token_type_ids"] = np.zeros(shape, np.int64)
    call = how.by.runner(Path(folder), how).prepare(inputs)
    for _ in range(3):
        call()
    with profile(activities=[ProfilerActivity.CUDA]) as noted:
        call()
        torch.cuda.synchronize()
    return counted(noted.events())


def counted(events) -> dict[str, float]:
    """Return the number of kernels among the events of a profile, and their milliseconds; copies are no kernels."""
    ran = [event for event in events if event.device_type.name == "CUDA" and not event.name.startswith("Mem")]
    return {"kernels": len(ran), "kernels_ms": sum(event.time_range.elapsed_us() for event in ran) / 1e3}


if __name__ == "__main__":
    print(json.dumps({"peaks": peaks, "kernels": kernels}[sys.argv[1]](*sys.argv[2:])))
