"""The runner of the original model in PyTorch, as a user would serve the model without a recipe."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.kit.checkpoints import checkpoint
from engine.kit.reference.quiet import quiet
from engine.recipe import image_input
from engine.runtimes import devices
from engine.runtimes.execution import Execution
from engine.runtimes.rival import RivalModel, no_checkpoint
from engine.runtimes.runner import Runner
from engine.step import Hardware
from engine.tasks import Modality
from engine.text import distribution, reasons

if TYPE_CHECKING:
    import numpy as np
    import torch

    Tensors = Mapping[str, np.ndarray]

_DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


def rival(original: RivalModel, *, name: str, precision: str, execution: Execution, threads: int) -> Runner:
    """Return the runner of the original model in PyTorch: eager mode, the whole model in one precision.

    The model runs on the GPU of `execution`, or on the CPU where `execution` has no GPU. For a model that generates
    text, a prepared call is a greedy `generate()` of exactly `original.new_tokens` tokens. Raises StepError where there
    is no PyTorch model, torch is not installed, or torch cannot use the GPU, as a CPU never takes the place of a GPU.
    """
    directory, images, new_tokens = original.checkpoint, original.images, original.new_tokens
    if directory is None or checkpoint.kind(directory) == "onnx":
        raise no_checkpoint("PyTorch")
    library = image_input.library(images)
    extra = "timm" if image_input.modality(images) is Modality.IMAGE else "cpu"
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec(library) is None:
        raise StepError(
            f"Measuring against PyTorch needs torch and {library}, and they are not installed",
            ["bench.against asks for runtime: pytorch"],
            f"{distribution.install(extra)}, or take pytorch out of bench.against",
        )
    import torch

    from engine.kit.reference import torch_models

    device = _device(execution.hardware)
    if device.type == "cuda" and precision == "fp32":
        _use_tf32(execution.options.get("tf32"))
    module = torch_models.load(
        directory,
        checkpoint.task(directory, original.task),
        num_labels=original.num_labels,
        random_head=original.random_head,
        images=images,
    )
    module = module.to(device=device, dtype=getattr(torch, _DTYPES[precision]))

    def prepare(inputs: Tensors) -> Callable[[], object]:
        tensors = {name: torch.from_numpy(array).to(device) for name, array in inputs.items()}

        def call() -> None:
            with torch.inference_mode():
                if new_tokens is None:
                    module(*(tensors[name] for name in module.input_names))
                else:
                    _generate(module.model, tensors, new_tokens)
            if device.type == "cuda":
                torch.cuda.synchronize(device)

        try:
            call()  # fails here where the model has an operator without a kernel in this precision
        except (RuntimeError, NotImplementedError) as error:
            raise StepError(
                f"{name} cannot run on {device}", reasons.facts(error), "take it out of bench.against"
            ) from error
        return call

    def run(inputs: Tensors) -> dict[str, np.ndarray]:
        with torch.inference_mode():
            answers = module(*(torch.from_numpy(inputs[name]).to(device) for name in module.input_names))
        return {key: answer.float().cpu().numpy() for key, answer in zip(module.output_names, answers, strict=True)}

    return Runner(name, run, prepare, lambda: _TorchThreads(threads))


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
    gpu = devices.chosen(hardware)
    if not torch.cuda.is_available():
        built = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "built without CUDA"
        raise StepError(
            f"PyTorch cannot use the {gpu.name}, and its latency on a CPU would be no rival",
            [f"torch {torch.__version__}, {built}"],
            "install a torch that is built for the CUDA of the driver, or take pytorch out of bench.against",
        )
    return torch.device("cuda", gpu.index)


def _use_tf32(tf32: bool | None) -> None:  # noqa: FBT001 - the value of the recipe's field
    """Let PyTorch compute products and convolutions of fp32 in TF32, or not; None for PyTorch's own defaults."""
    import torch

    if tf32 is not None:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.backends.cudnn.allow_tf32 = tf32
    products, convolutions = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    print(f"PyTorch computes fp32 in TF32: matrix products {products}, convolutions {convolutions}")


class _TorchThreads:
    """Context manager: PyTorch uses `threads` threads in the `with` block, and as many as before afterwards."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.before = threads

    def __enter__(self) -> None:
        import torch

        self.before = torch.get_num_threads()
        torch.set_num_threads(self.threads)

    def __exit__(self, *reason: object) -> None:
        import torch

        torch.set_num_threads(self.before)
