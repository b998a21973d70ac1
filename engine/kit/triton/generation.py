"""Generation: a model that generates text as parts: its graphs, and two python models that clients call."""

# Sources: Triton's documentation: "Business Logic Scripting" and "Decoupled mode" of the python backend, "Generate
# Extension", "Optional inputs" of the model configuration. Tensors of no extent, as the first past is one, are tested
# with its onnxruntime backend in Triton's own L0_infer_zero.

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from engine.kit.generation import settings
from engine.kit.generation.settings import Settings
from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.onnx import graphs, past
from engine.kit.triton import fields, served
from engine.kit.triton import model as models
from engine.kit.triton import parts as python_models
from engine.kit.triton.config import Config, Signature
from engine.kit.triton.parts import Files, Part
from engine.kit.triton.serving import Serving
from engine.runtimes.served import Served
from engine.tasks import AnswerTensor

Graphs = Mapping[str, tuple[Config, Signature]]
"""By the folders of a built model: `graphs.WHOLE`, or `graphs.ENCODER` and `graphs.DECODER`."""

_TAKES = (
    AnswerTensor("TEXT", "TYPE_STRING", (1,)),
    AnswerTensor("MAX_NEW_TOKENS", "TYPE_INT32", (1,)),
    AnswerTensor("STOP", "TYPE_STRING", (-1,)),
)
"""What clients ask: the first is needed."""
_GIVES = (
    AnswerTensor("text", "TYPE_STRING", (1,)),
    AnswerTensor("token_ids", "TYPE_INT64", (-1,)),
    AnswerTensor("finish_reason", "TYPE_STRING", (1,)),
)
data = ("../generation/greedy.py",)  # it is shipped as it is
GraphKind = Literal["model", "encoder", "decoder"]
_KINDS: Mapping[str, GraphKind] = {graphs.WHOLE: "model", graphs.ENCODER: "encoder", graphs.DECODER: "decoder"}
"""What `package.triton.models` calls each graph; a single one is the model itself."""


def parts(
    serving: Serving, validated: Path, checkpoint: Path, scratch: Path, *, task: str
) -> tuple[list[Part], dict[str, Files]]:
    """Return the models of the repository, what clients call last, and the files of each graph, by model.

    Raises StepError where the model's own settings ask for what greedy generation cannot honour.
    """
    made: dict[str, tuple[Config, Signature]] = {}
    files: dict[str, Files] = {}
    for part in graphs.folders(validated):
        name = serving.model_name if part == graphs.WHOLE else f"{serving.model_name}_{part}"
        model = models.served(serving, validated / part, scratch)
        files[name] = Files(validated / part, model.files)
        made[part] = _graph(serving.model_copy(update={"model_name": name}), model, _KINDS[part])
    listed = [Part(config) for config, _ in made.values()]
    tokenizer = tokenizers.load(checkpoint) if serving.tokenizer else None
    if tokenizer is None:
        print("the package has no tokenizer: it takes tokens and their past")
        return listed, files
    longest = serving.largest.get("total_sequence")
    said = settings.read(checkpoint, max_new_tokens=serving.max_new_tokens, longest=longest)
    print("\n".join(said.notes) or "text is generated greedily, as the model's own settings have it")
    tokenizer.backend.no_truncation()
    shipped = _files(tokenizer.backend, _shipped(said, made, serving.largest))
    for name, streams in ((f"{serving.model_name}_stream", True), (serving.ensemble, False)):
        listed.append(_entry(name, made, shipped, task=task, streams=streams))
        fields.overridden(listed[-1].config, serving, "stream" if streams else "generate")
    return listed, files


def _graph(serving: Serving, model: Served, kind: GraphKind) -> tuple[Config, Signature]:
    """Return the configuration of a graph.

    Its requests are not put together: each is in the middle of texts of its own, so that their shapes differ, and a
    past is large to copy. Rows are put together before, by the models that ask the graphs.
    """
    config, signature = models.config(serving, model, part=kind)
    if not fields.says(serving, kind, "dynamic_batching"):
        config.ClearField("dynamic_batching")
    return config, signature


def _entry(name: str, made: Graphs, files: Mapping[str, bytes], *, task: str, streams: bool) -> Part:
    """Return a model that clients call: whole answers, or their pieces."""
    graph, _ = made[graphs.DECODER if graphs.DECODER in made else graphs.WHOLE]
    part = python_models.python(
        name, graph, takes=_TAKES, gives=_GIVES, work=served.GENERATE[0], settings={}, needs=("tokenizers",)
    )
    for tensor in part.config.input[1:]:
        tensor.optional = True
    if streams:
        part.config.model_transaction_policy.decoupled = True
    python_models.mark(part.config, task)
    return Part(part.config, files, part.beside)


def _files(tokenizer: Any, said: Mapping[str, Any]) -> dict[str, bytes]:
    """Return what lies in the folder of such a model's version."""
    loop = Path(__file__).parent / data[0]
    return {
        "model.py": served.code(served.GENERATE[0]),
        **{name: served.code(name) for name in served.GENERATE[1:]},
        loop.name: loop.read_bytes(),
        "tokenizer.json": str(tokenizer.to_str(pretty=False)).encode(),
        "generation.json": (json.dumps(said, indent=1, sort_keys=True) + "\n").encode(),
    }


def _shipped(said: Settings, made: Graphs, largest: Mapping[str, int]) -> dict[str, object]:
    """Return generation.json: what the served code must know of the model and its graphs."""
    behind = graphs.ENCODER in made
    decoder, signature = made[graphs.DECODER if behind else graphs.WHOLE]
    # Behind an encoder the others are the encoder's, which gives them.
    own = f".{past.OWN}." if behind else "."
    first = {name: each for name, each in signature.inputs.items() if name.startswith(f"{past.PAST}.") and own in name}
    sequence = largest.get("sequence")
    limits = (largest.get("encoder_sequence", sequence), said.positions) if behind else (sequence,)
    return {
        "settings": said.as_json(),
        "prompts": {
            "longest": min((limit for limit in limits if limit is not None), default=None),
            "positions": said.positions,
            "encoder": behind,
            "empty": said.first_token_id,
        },
        "graphs": {
            "decoder": decoder.name,
            "encoder": made[graphs.ENCODER][0].name if behind else None,
            "outputs": {"decoder": list(signature.outputs), "encoder": list(_encoder_outputs(made))},
            "past": {name: [each.dtype, each.shape[1], each.shape[3]] for name, each in first.items()},
        },
    }


def _encoder_outputs(made: Graphs) -> Mapping[str, Any]:
    return made[graphs.ENCODER][1].outputs if graphs.ENCODER in made else {}
