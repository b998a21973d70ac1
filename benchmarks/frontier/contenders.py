"""Contenders: the models of the contest on disk, and how each is opened and called as its users call it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Tensors = Mapping[str, np.ndarray]

Call = Callable[[], object]
LATENCY = {"PERFORMANCE_HINT": "LATENCY"}
"""The hint that OpenVINO's users give for one call at a time."""


@dataclass(frozen=True)
class Contender:
    """A model of the contest.

    `kind` says what opens the model: "ours", "onnx", "openvino", "torch", "torchscript" or "sentence-transformers".
    `family` is the tool that made it; bounds name families. `python` is the interpreter that opens it; empty for this
    one.
    """

    name: str
    kind: str
    family: str
    path: str = ""
    versions: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    python: str = ""
    absent: str = ""
    """Why there is no model: the tool is not installed, or its error."""

    @classmethod
    def read(cls, file: Path) -> Contender:
        """Return the contender that `write` wrote."""
        return cls(**json.loads(file.read_text()))

    def write(self, file: Path) -> None:
        """Write the contender as JSON."""
        file.write_text(json.dumps(asdict(self), indent=1))


@dataclass(frozen=True)
class Opened:
    """A model that is ready. `run` returns its outputs by name; `prepare` returns the call that is timed."""

    run: Callable[[Tensors], dict[str, np.ndarray]]
    prepare: Callable[[Tensors], Call]


def opened(contender: Contender, threads: int) -> Opened:
    """Open a contender for calls with a number of threads."""
    openers = {"ours": _ours, "onnx": _onnx, "openvino": _openvino, "torch": _torch, "torchscript": _torchscript}
    openers["sentence-transformers"] = _sentence_transformers
    return openers[contender.kind](contender, threads)


def _ours(contender: Contender, threads: int) -> Opened:
    """Open what `recipe build` validated, with the runtime, the options and the shapes that travel with it."""
    from engine.runtimes.execution import Execution

    directory = Path(contender.path)
    execution = Execution(**contender.options["execution"])
    if hasattr(execution, "of_model"):
        execution = execution.of_model(directory)  # `auto` has written its choice beside the model
    runner = execution.by.runner(directory, execution, name=contender.name, threads=threads)
    return Opened(runner.run, runner.prepare)


def _onnx(contender: Contender, threads: int) -> Opened:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(contender.path, options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    types = {"tensor(int64)": "int64", "tensor(int32)": "int32", "tensor(float)": "float32"}
    inputs = {value.name: types.get(value.type) for value in session.get_inputs()}

    def feed(given: Tensors) -> dict[str, np.ndarray]:
        return {name: given[name].astype(kind or given[name].dtype, copy=False) for name, kind in inputs.items()}

    def prepare(given: Tensors) -> Call:
        fed = feed(given)
        return lambda: session.run(names, fed)

    return Opened(lambda given: dict(zip(names, session.run(names, feed(given)), strict=True)), prepare)


def _openvino(contender: Contender, threads: int) -> Opened:
    """Open an IR: timed calls are compiled for the shapes of their inputs, others for the model's own shapes.

    A timed call binds its inputs once and copies no output, as a call of our own runner for OpenVINO does. At one short
    text, what Python does for each call would else be a part of the difference.
    """
    import openvino

    core = openvino.Core()
    model = core.read_model(contender.path)
    options = {**LATENCY, "INFERENCE_NUM_THREADS": str(threads), **contender.options}
    requests: list[openvino.InferRequest] = []

    def feed(given: Tensors) -> dict[str, np.ndarray]:
        return {
            value.any_name: given[_known(value, given)].astype(value.element_type.to_dtype(), copy=False)
            for value in model.inputs
        }

    def run(given: Tensors) -> dict[str, np.ndarray]:
        if not requests:
            requests.append(core.compile_model(model, "CPU", options).create_infer_request())
        results = requests[0].infer(feed(given))
        return {
            next(iter(sorted(value.get_names())), f"output_{place}"): results[value].copy()
            for place, value in enumerate(requests[0].get_compiled_model().outputs)
        }

    def prepare(given: Tensors) -> Call:
        fed = feed(given)
        fixed = model.clone()
        fixed.reshape({name: openvino.PartialShape(array.shape) for name, array in fed.items()})
        request = core.compile_model(fixed, "CPU", options).create_infer_request()
        for name, array in fed.items():
            request.set_tensor(name, openvino.Tensor(array, shared_memory=False))
        return lambda: request.infer(share_outputs=True)

    return Opened(run, prepare)


def _known(value: Any, given: Tensors) -> str:
    """Return the name of an input, which may have several names, among those given."""
    return next(name for name in value.get_names() if name in given)


def _torch(contender: Contender, threads: int) -> Opened:
    import torch
    import transformers

    torch.set_num_threads(threads)
    model = getattr(transformers, contender.options["class"]).from_pretrained(contender.path).eval()
    output = contender.options["output"]
    # Answers have many lengths, so they come from a graph with free shapes; timed calls from one for each shape.
    fixed, free = model, model
    if contender.options.get("compile"):
        fixed, free = torch.compile(model, dynamic=False), torch.compile(model, dynamic=True)

    def prepare(given: Tensors, called: Any = fixed) -> Call:
        return _inferred(lambda tensors: getattr(called(**tensors), output), given)

    return Opened(lambda given: {output: prepare(given, free)().numpy()}, prepare)


def _inferred(forward: Callable[[dict[str, Any]], Any], given: Tensors) -> Callable[[], Any]:
    """Return a call of a PyTorch model with tensors that are ready."""
    import torch

    tensors = {name: torch.from_numpy(array) for name, array in given.items()}

    def call() -> Any:
        with torch.inference_mode():
            return forward(tensors)

    return call


def _sentence_transformers(contender: Contender, threads: int) -> Opened:
    """Open a model with a backend of sentence-transformers, and call the module that runs it, without the pooling."""
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(threads)
    backend = contender.options["backend"]
    options = dict(contender.options.get("model_kwargs", {}))
    if backend == "onnx":
        import onnxruntime

        options |= {"session_options": onnxruntime.SessionOptions(), "provider": "CPUExecutionProvider"}
        options["session_options"].intra_op_num_threads = threads
    elif backend == "openvino":
        options["ov_config"] = {**LATENCY, "INFERENCE_NUM_THREADS": str(threads)}
    module = SentenceTransformer(contender.path, backend=backend, device="cpu", model_kwargs=options)[0].eval()

    def prepare(given: Tensors) -> Callable[[], Any]:
        return _inferred(lambda tensors: module(dict(tensors))["token_embeddings"], given)

    return Opened(lambda given: {"token_embeddings": prepare(given)().numpy()}, prepare)


def _torchscript(contender: Contender, threads: int) -> Opened:
    import torch

    torch.set_num_threads(threads)
    model = torch.jit.load(contender.path)
    names = contender.options["inputs"]

    def prepare(given: Tensors) -> Callable[[], Any]:
        return _inferred(lambda tensors: model(*(tensors[name] for name in names)), given)

    def run(given: Tensors) -> dict[str, np.ndarray]:
        answer = prepare(given)()
        return {contender.options["output"]: (answer if isinstance(answer, torch.Tensor) else answer[0]).numpy()}

    return Opened(run, prepare)
