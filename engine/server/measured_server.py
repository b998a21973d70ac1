"""Measured server: models on a real Triton, served as in their packages, and timed as their clients meet them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from engine import tasks
from engine.client.client import Client
from engine.client.failures import RequestRefusedError, ServerGoneError
from engine.client.model_metadata import ModelMetadata
from engine.errors import StepError
from engine.kit.bench.interleaving import Contender
from engine.kit.bench.report import ServerReport
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import json_files
from engine.kit.images.preparation import Preparation
from engine.kit.inputs import drawn_images, exact_texts
from engine.kit.inputs.tokenizer import Tokenizer
from engine.kit.triton import parts, repository
from engine.kit.triton.serving import ENSEMBLE, Serving
from engine.runtimes.runtime import Runtime
from engine.runtimes.triton_tensors import IMAGE, TEXT
from engine.server.server import start
from engine.text import lists

if TYPE_CHECKING:
    import numpy as np

    from engine.server.server import Server

    Tensors = Mapping[str, np.ndarray]

_TIMEOUT = 300.0
"""Seconds to wait for a response from the measured server: a large model on a busy CPU may take minutes."""
_PAIR = 2
"""The number of texts in a row of a model that takes pairs of texts."""
_USUAL_SIZE = (480, 640)
"""The height and width of an image file for a model of one size, whose package scales every file."""
_PICTURES = 8
_PLAIN = "as_exported"


@dataclass(frozen=True)
class ServedModel:
    """A model to serve and measure: its name in the report, how Triton serves the model, and the model's folder."""

    runtime: str
    ours: bool
    serving: Serving
    directory: Path


@contextlib.contextmanager
def started(
    models: Sequence[ServedModel], *, checkpoint: Path, scratch: Path, protocols: Sequence[str], threads: int
) -> Iterator[tuple[tuple[Contender, ...], ServerReport]]:
    """Serve the models until the block ends; yield a contender for each model and way, and the report on the server.

    The first of `models` is the recipe's own model. `protocols` are those of the calls: triton-grpc, triton-http or
    both. The model repositories are written as in packages. On a CPU each model gets `threads` threads, as a model in
    process does, unless the recipe's own fields set the number of threads. Raises StepError where there is no server,
    where the server cannot serve a model, and for a model that generates text.
    """
    _refuse_generation(checkpoint, models[0].serving)
    folder = scratch / "repository"
    names = []
    for model in models:
        options = model.serving.model_copy(update={"threads": model.serving.threads or threads})
        written = repository.write(folder, options, validated=model.directory, checkpoint=checkpoint)
        names.append(written.name)
    with start(folder) as server, contextlib.ExitStack() as stack:
        clients = {
            protocol: stack.enter_context(Client(_url(protocol, server), timeout=_TIMEOUT)) for protocol in protocols
        }
        metadata = [
            entry(next(iter(clients.values())), name, model.serving.model_name)
            for model, name in zip(models, names, strict=True)
        ]
        contenders = [
            Contender(
                runtime=model.runtime,
                via=protocol,
                ours=model.ours,
                prepare=partial(_prepare, client, called, folder, model.serving.model_name),
            )
            for protocol, client in clients.items()
            for model, called in zip(models, metadata, strict=True)
        ]
        report = ServerReport(
            kind=server.kind, version=server.version, stand_in=server.stand_in, asked=metadata[0].name
        )
        yield tuple(contenders), report


def plain(ours: Serving, exported: Path, *, runtime: Runtime, name: str) -> ServedModel:
    """Return the exported model with Triton's defaults only: a rival, as users would serve the model without recipe."""
    own = f"{ours.model_name}_{_PLAIN}"
    execution = runtime.as_rival(ours.execution)
    update = {"model_name": own, "ensemble": f"{own}_text", "fields": {}, "execution": execution, "layout": ENSEMBLE}
    return ServedModel(name, ours=False, serving=ours.model_copy(update=update), directory=exported)


def entry(client: Client, name: str, model: str) -> ModelMetadata:
    """Return the model `name` where it takes only texts and image files; else the model `model`, of tensors."""
    called = client.choose(name)
    return called if {tensor.name for tensor in called.inputs} <= {TEXT, IMAGE} else client.choose(model)


def arrays(model: ModelMetadata, inputs: Tensors, folder: Path, name: str) -> dict[str, np.ndarray]:
    """Return the arrays to send to a served model; `inputs` are the tensors that the same model gets in process.

    A model that takes texts gets as many texts as `inputs` has rows, each with as many tokens as a row of `inputs`. A
    model that takes image files gets as many files, which become images of the same size. A model that takes tensors
    gets `inputs`. `folder` is the model repository, and `name` the name of the package's model in it. Raises StepError
    where no text has exactly as many tokens, and where files do not become images of the size.
    """
    sent = {}
    if model.input(IMAGE) is not None:
        sent[IMAGE] = _files(folder, name, inputs)
    if (texts := model.input(TEXT)) is not None:
        *shape, tokens = inputs["input_ids"].shape
        tokenizer = repository.tokenizer_of(folder, name)
        drawn = _texts(tokenizer, math.prod(shape), tokens, paired=IMAGE not in sent and texts.shape[-1] == _PAIR)
        sent[TEXT] = drawn.reshape(*shape[:1], -1)
    return sent or tensors(model, inputs)


def tensors(model: ModelMetadata, inputs: Tensors) -> dict[str, np.ndarray]:
    """Return the tensors of a model as a server takes them: [rows, 1] for the model's [rows]."""
    scalar_axes = 1 if model.max_batch_size else 0
    return {name: array[..., None] if array.ndim == scalar_axes else array for name, array in inputs.items()}


def _files(folder: Path, name: str, inputs: Tensors) -> np.ndarray:
    """Return an image file a row: of the images' own size where the model takes any size, else as phones send them."""
    import numpy as np

    place = next(path.parent for path in sorted(folder.glob(f"{name}*/1/preparation.py")))
    settings = json_files.settings(place / parts.SETTINGS)
    pixels = inputs[settings["output"]]
    own = pixels.shape[1:3] if settings["last"] else pixels.shape[2:4]
    size = own if None in settings["shape"] else _USUAL_SIZE
    files = [drawn_images.png(*size, seed=row % _PICTURES) for row in range(len(pixels))]
    prepared = Preparation(settings).tensors(files[:1])[settings["output"]].shape[1:]
    if prepared != pixels.shape[1:]:
        raise StepError(
            f"no image file becomes {lists.extents(pixels.shape[1:])}, the shape to measure",
            [f"a file of {lists.extents(own)} becomes {lists.extents(prepared)}"],
            "name the height and width under bench.shapes that the image processor gives, or use via: [in-process]",
        )
    return np.array([[file] for file in files], dtype=object)


def _texts(tokenizer: Path, rows: int, tokens: int, *, paired: bool) -> np.ndarray:
    import numpy as np
    import tokenizers

    backend = tokenizers.Tokenizer.from_file(str(tokenizer))
    backend.no_padding()
    prompt = json_files.settings(tokenizer.parent / "settings.json").get("prompt", "")
    texts = exact_texts.draw(Tokenizer(backend, pad=0, prompt=prompt), rows=rows, tokens=tokens, paired=paired)
    return np.array([[text.encode() for text in row] for row in texts], dtype=object)


def _prepare(client: Client, model: ModelMetadata, folder: Path, name: str, inputs: Tensors) -> Callable[[], object]:
    """Return a call that encodes, sends and decodes. Raises StepError where the first request is not answered."""
    request = arrays(model, inputs, folder, name)
    call = partial(client.infer, model, request)
    try:
        call()
    except (RequestRefusedError, ServerGoneError) as error:
        raise StepError(
            f"the server does not answer {model.name} over {client.address.protocol}",
            error.facts or [error.what],
            "is the shape within the profiles and package.triton.max_batch_size?",
        ) from error
    return call


def _url(protocol: str, server: Server) -> str:
    return f"grpc://{server.grpc}" if protocol == "triton-grpc" else f"http://{server.http}"


def _refuse_generation(checkpoint: Path, options: Serving) -> None:
    task = options.task if checkpoints.kind(checkpoint) == "onnx" else checkpoints.task(checkpoint, options.task)
    if tasks.generates(task):
        raise StepError(
            f"not supported yet: measuring {task} through a server",
            ["a text is generated by many calls of the model, and bench measures single calls"],
            "use bench.via: [in-process]",
        )
