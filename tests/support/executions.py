"""Executions and runners in few words, for tests of what runs models."""

from pathlib import Path

from engine.runtimes.execution import Execution
from engine.runtimes.registry import find
from engine.runtimes.runner import RivalModel


def execution(provider=None, *, runtime="onnxruntime", hardware=None, **options):
    """Return an execution: of ONNX Runtime by its provider, of any other runtime by its name."""
    if runtime == "onnxruntime":
        whole = {"cuda_graph": False, "profiles": [], "workspace": None, "optimization_level": None}
        options = {"provider": provider or "cpu", **(whole if provider == "tensorrt" else {}), **options}
    else:
        options = {"cuda_graph": False, **options}
    if "profiles" in options:
        options["profiles"] = [
            {axis: extent.model_dump() for axis, extent in profile.items()} for profile in options["profiles"]
        ]
    on_gpu = runtime != "onnxruntime" or provider not in (None, "cpu")
    return Execution(runtime=runtime, on_gpu=on_gpu, hardware=hardware, options=options)


def built(directory: Path, execution: Execution | None = None, **named):
    """Return the runner of a built model."""
    chosen = execution or Execution()
    return chosen.by.runner(directory, chosen, **named)


def original(checkpoint: Path, **rival):
    """Return the original model of a checkpoint, as a rival runs it."""
    return RivalModel(exported=checkpoint, checkpoint=checkpoint, **rival)


def plain(directory: Path, execution: Execution | None = None, *, name="plain", threads=0):
    """Return the runner of an exported model as ONNX Runtime's users open it."""
    chosen = execution or Execution()
    return find("onnxruntime").rival(
        RivalModel(exported=directory), name=name, precision="fp32", execution=chosen, threads=threads
    )
