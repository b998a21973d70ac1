"""The runner of the original model in PyTorch, eager or compiled, as a user would serve the model without a recipe."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import StepError, causes
from engine.kit.checkpoints import checkpoint
from engine.kit.onnx import foreign_functions
from engine.kit.reference.model_loading import quiet
from engine.runtimes import devices
from engine.runtimes.execution import Execution
from engine.runtimes.runner import RivalModel, Runner, no_checkpoint
from engine.step import Hardware
from engine.text import distribution, reasons

if TYPE_CHECKING:
    import numpy as np
    import torch

    Tensors = Mapping[str, np.ndarray]

_DTYPES = {"fp32": "float32", "tf32": "float32", "fp16": "float16", "bf16": "bfloat16"}
CALLS = 3
"""The calls of a shape before its measurement: the first compiles, and the second captures a CUDA graph."""
_SHAPES = 4096
"""The largest number of shapes for which PyTorch compiles a module; by its default, the ninth runs in eager mode."""
_NO_COMPILER = ("InvalidCxxCompiler", "CppCompileError")
"""The names of PyTorch's errors for a missing C++ compiler, and for a compiler that lacks headers such as Python's."""
_LINES = 4
"""The greatest number of lines of the compiler's output that an error quotes."""


def rival(original: RivalModel, *, name: str, precision: str, execution: Execution, threads: int) -> Runner:
    """Return the runner of the original model in PyTorch: the whole model in one precision, in eager mode or compiled.

    The model runs on the GPU of `execution`, or on the CPU where `execution` has no GPU. For a model that generates
    text, a prepared call is a greedy `generate()` of exactly `original.new_tokens` tokens. Raises StepError where there
    is no PyTorch model, torch is not installed, or torch cannot use the GPU, as a CPU never takes the place of a GPU.
    """
    model = _loaded(original)
    import torch

    device, mode, new_tokens = _device(execution.hardware), original.compile, original.new_tokens
    tf32 = precision == "tf32" or (execution.options.get("tf32") if precision == "fp32" else None)
    settings = functools.partial(_settings, threads, tf32 if device.type == "cuda" else None)
    model = model.to(device=device, dtype=getattr(torch, _DTYPES[precision]))
    if device.type == "cuda" and precision in {"fp32", "tf32"}:
        with settings():
            products, convolutions = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
        print(f"{name} computes fp32 in TF32: matrix products {products}, convolutions {convolutions}")
    module = model if mode is None else compiled(model, mode, original.scratch)
    compiled_for: set[str] = set()

    def prepare(inputs: Tensors) -> Callable[[], object]:
        tensors = {name: torch.from_numpy(array).to(device) for name, array in inputs.items()}

        def call() -> None:
            with torch.inference_mode():
                if new_tokens is None:
                    module(*(tensors[name] for name in model.input_names))
                else:
                    _generate(model.model, tensors, new_tokens)
            if device.type == "cuda":
                torch.cuda.synchronize(device)

        if mode is None:
            _try(call, 1, name, settings, RuntimeError)  # of an operator without a kernel in this precision
            return call
        seconds = _try(call, CALLS, name, settings, Exception)  # a compiler raises errors of any type
        shape = ", ".join(f"{name} {list(array.shape)}" for name, array in inputs.items())
        if shape not in compiled_for:
            compiled_for.add(shape)
            print(f"{name} was compiled for {shape} in {seconds:.1f} s, which no latency contains")
        return call

    def run(inputs: Tensors) -> dict[str, np.ndarray]:
        with settings(), torch.inference_mode():
            answers = module(*(torch.from_numpy(inputs[name]).to(device) for name in model.input_names))
        return {key: answer.float().cpu().numpy() for key, answer in zip(model.output_names, answers, strict=True)}

    return Runner(name, run, prepare, settings)


def _loaded(original: RivalModel) -> torch.nn.Module:
    """Return the original model on the CPU, in fp32, with the attention that transformers takes by default.

    Raises StepError where there is no PyTorch model, torch is not installed, or the model cannot be measured compiled.
    """
    directory, images = original.checkpoint, original.images
    if directory is None or checkpoint.kind(directory) == "onnx":
        raise no_checkpoint("PyTorch")
    library = checkpoint.kind(directory)
    extra = "timm" if library == "timm" else "cpu"
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec(library) is None:
        raise StepError(
            f"Measuring against PyTorch needs torch and {library}, and they are not installed",
            ["bench.against asks for runtime: pytorch"],
            f"{distribution.install(extra)}, or take pytorch out of bench.against",
        )
    if original.compile is not None and original.new_tokens is not None:
        raise StepError("A model that generates text is not measured with torch.compile", hint="leave compile out")
    from engine.kit.reference import torch_models

    model = torch_models.load(
        directory,
        checkpoint.task(directory, original.task),
        num_labels=original.num_labels,
        random_head=original.random_head,
        images=images,
    )
    # Loaded is the attention that exporters can read. A model of timm has no switch, and some models have no other.
    with contextlib.suppress(AttributeError, ValueError):
        model.model.set_attn_implementation("sdpa")
    return model


def _try(
    call: Callable[[], None],
    times: int,
    name: str,
    settings: Callable[[], AbstractContextManager[None]],
    errors: type[Exception],
) -> float:
    """Call the model `times` times before it is measured, and return the seconds of the first call.

    Raises StepError in place of errors of the type `errors`.
    """
    try:
        with settings():
            began = time.perf_counter()
            call()
            seconds = time.perf_counter() - began
            for _ in range(times - 1):
                call()
    except errors as error:
        raise refusal(error, name) from error
    return seconds


@contextlib.contextmanager
def _settings(threads: int, tf32: bool | None) -> Iterator[None]:  # noqa: FBT001 - the value of the recipe's field
    """Let PyTorch use `threads` threads in the `with` block, and compute fp32 in TF32 or not; None for its defaults."""
    import torch

    products, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    if tf32 is not None:
        allowed = products.allow_tf32, convolutions.allow_tf32
        products.allow_tf32 = convolutions.allow_tf32 = tf32
    try:
        yield
    finally:
        torch.set_num_threads(before)
        if tf32 is not None:
            products.allow_tf32, convolutions.allow_tf32 = allowed


def _generate(model: Any, tensors: Mapping[str, torch.Tensor], new_tokens: int) -> None:
    """Generate exactly `new_tokens` tokens with transformers' own loop; an end token does not stop it."""
    with quiet():
        model.generate(
            **tensors,
            min_new_tokens=new_tokens,
            max_new_tokens=new_tokens,
            do_sample=False,
            num_beams=1,
            use_cache=True,
            pad_token_id=model.config.pad_token_id or 0,
        )


def _device(hardware: Hardware | None) -> torch.device:
    """Return the `torch.device` on which the model runs.

    Raises StepError where this machine lacks the GPU, or where PyTorch is built without CUDA.
    """
    import torch

    if hardware is None:
        return torch.device("cpu")
    no_rival, without = ", and its latency on a CPU would be no rival", ", or take pytorch out of bench.against"
    return torch.device(devices.of_pytorch(devices.chosen(hardware), consequence=no_rival, otherwise=without))


def compiled(module: torch.nn.Module, mode: str, scratch: Path | None) -> torch.nn.Module:
    """Return the module compiled in a mode of torch.compile; the compilation takes place in the first call of a shape.

    The compilers run in this process and write to the folder `scratch`, so that nothing of them outlives a job.
    """
    import torch

    if scratch is not None:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(scratch / "torchinductor")
        os.environ["TRITON_CACHE_DIR"] = str(scratch / "triton")
    foreign_functions.compile_in_this_process(shutil.which("g++") or "g++", _SHAPES)
    return torch.compile(module, mode=mode, dynamic=False)


def refusal(error: Exception, name: str) -> StepError:
    """Return the error for the rival called `name`, of which a call before the measurement raised `error`."""
    cause = next((cause for cause in causes(error) if type(cause).__name__ in _NO_COMPILER), None)
    if cause is None:
        return StepError(f"{name} cannot run", reasons.facts(error), "take it out of bench.against")
    output = getattr(cause, "output", "").strip().splitlines()[:_LINES]
    return StepError(
        f"{name} cannot be compiled: g++ is not installed, or it failed",
        output or reasons.facts(error),
        "install g++ and the headers of Python (g++, python3-dev), or take it out of bench.against",
    )
