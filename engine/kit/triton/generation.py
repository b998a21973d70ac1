"""Generation: the parts of a package that generates text, namely graphs and the two python models that clients call."""

# Sources: Triton's documentation: "Business Logic Scripting" and "Decoupled mode" of the python backend, "Generate
# Extension", "Optional inputs" of the model configuration. The first past has tensors of extent 0; Triton's own test
# L0_infer_zero sends such tensors to its onnxruntime backend.

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.kit.accuracy.batching import RowBatching
from engine.kit.generation import settings
from engine.kit.generation.settings import Settings
from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.onnx import graphs
from engine.kit.triton import fields, served, text
from engine.kit.triton import model as models
from engine.kit.triton import parts as python_models
from engine.kit.triton.config import Config, Signature
from engine.kit.triton.parts import Files, Part
from engine.kit.triton.serving import Serving
from engine.recipe.model_config import GraphPart
from engine.runtimes.triton_tensors import MAX_NEW_TOKENS, STOP, TEXT
from engine.tasks import AnswerTensor

Graphs = Mapping[str, tuple[Config, Signature]]
"""The configuration and the signature (inputs and outputs) of each graph, by the graph's folder in a built model.

A built model has one folder, `graphs.WHOLE`, or the two folders `graphs.ENCODER` and `graphs.DECODER`.
"""

_TAKES = (
    AnswerTensor(TEXT, "TYPE_STRING", (1,)),
    AnswerTensor(MAX_NEW_TOKENS, "TYPE_INT64", (1,)),  # Triton takes 2^32 + 5 of JSON for 5, where INT32 is declared
    AnswerTensor(STOP, "TYPE_STRING", (-1,)),
)
"""The inputs of the two models that generate text for clients: TEXT is required, the other inputs are optional."""
_GIVES = (
    AnswerTensor("text", "TYPE_STRING", (1,)),
    AnswerTensor("token_ids", "TYPE_INT64", (-1,)),
    AnswerTensor("finish_reason", "TYPE_STRING", (1,)),
)
data = ("../generation/greedy.py",)  # packages carry this file unchanged
_KINDS: Mapping[str, GraphPart] = {graphs.WHOLE: "model", graphs.ENCODER: "encoder", graphs.DECODER: "decoder"}
"""Folder of a graph -> the graph's name under `package.triton.models`; a graph without others is called "model"."""


def parts(
    serving: Serving, validated: Path, checkpoint: Path, scratch: Path, *, task: str, batching: RowBatching
) -> tuple[list[Part], dict[str, Files]]:
    """Return the models of the repository, and for each graph the files of its model, by the model's name.

    Clients call the last of the returned models.

    Raises StepError where the model's generation settings have a value that greedy generation does not support.
    """
    by_folder: dict[str, tuple[Config, Signature]] = {}
    files: dict[str, Files] = {}
    for part in graphs.folders(validated):
        name = serving.model_name if part == graphs.WHOLE else f"{serving.model_name}_{part}"
        model = models.served_model(serving, validated / part, scratch)
        files[name] = Files(validated / part, model.files)
        named, kind = serving.model_copy(update={"model_name": name}), _KINDS[part]
        config, signature = models.config(named, model, part=kind)
        if not fields.says(named, kind, "dynamic_batching"):
            # Triton cannot join requests whose texts have different lengths, and joining would copy the large KV cache
            # of each request. A python model joins the rows of several requests itself, before it calls a graph.
            config.ClearField("dynamic_batching")
        by_folder[part] = config, signature
    listed = [Part(config) for config, _ in by_folder.values()]
    tokenizer = tokenizers.load(checkpoint) if serving.tokenizer else None
    if tokenizer is None:
        print("the package has no tokenizer: it takes tokens and their past")
        return listed, files
    longest = serving.largest.get("total_sequence")
    generation_settings = settings.read(checkpoint, max_new_tokens=serving.max_new_tokens, longest=longest)
    print("\n".join(generation_settings.notes) or "text is generated greedily, as the model's own settings have it")
    tokenizer.backend.no_truncation()
    generation_json = _generation_json(generation_settings, by_folder, serving)
    if batching is not RowBatching.TOGETHER:
        print(batching.note())
        generation_json["alone"] = True
    shipped = _files(tokenizer.backend, generation_json)
    for name, streams in ((f"{serving.model_name}_stream", True), (serving.ensemble, False)):
        listed.append(_entry(name, by_folder, shipped, task=task, streams=streams))
        if batching is not RowBatching.TOGETHER:
            listed[-1].config.parameters[python_models.ROWS].string_value = RowBatching.ALONE.value
        fields.overridden(listed[-1].config, serving, "stream" if streams else "generate")
    return listed, files


def _entry(name: str, by_folder: Graphs, files: Mapping[str, bytes], *, task: str, streams: bool) -> Part:
    """Return one of the two python models that generate text for clients.

    With `streams` the model returns its text piece by piece, otherwise in one response.
    """
    graph, _ = by_folder[graphs.DECODER if graphs.DECODER in by_folder else graphs.WHOLE]
    part = python_models.python(
        name, graph, takes=_TAKES, gives=_GIVES, work=served.GENERATE[0], settings={}, needs=("tokenizers",)
    )
    for tensor in part.config.input[1:]:
        tensor.optional = True
    if streams:
        part.config.model_transaction_policy.decoupled = True
    python_models.mark(part.config, task)
    return Part(part.config, files, part.beside)


def _files(tokenizer: Any, generation_json: Mapping[str, Any]) -> dict[str, bytes]:
    """Return name -> content of the files in the version folder of a python model that clients call."""
    loop = Path(__file__).parent / data[0]
    return {
        "model.py": served.code(served.GENERATE[0]),
        **{name: served.code(name) for name in served.GENERATE[1:]},
        loop.name: loop.read_bytes(),
        "tokenizer.json": str(tokenizer.to_str(pretty=False)).encode(),
        "generation.json": (json.dumps(generation_json, indent=1, sort_keys=True) + "\n").encode(),
    }


def _generation_json(generation_settings: Settings, by_folder: Graphs, serving: Serving) -> dict[str, object]:
    """Return the content of generation.json: what the python models must know of the graphs and their settings."""
    has_encoder = graphs.ENCODER in by_folder
    decoder, signature = by_folder[graphs.DECODER if has_encoder else graphs.WHOLE]
    # A decoder after an encoder also takes the encoder's past. Only the decoder's own past begins empty.
    own = f".{graphs.OWN}." if has_encoder else "."
    past = f"{graphs.PAST}."
    first = {name: each for name, each in signature.inputs.items() if name.startswith(past) and own in name}
    largest = serving.largest
    sequence = largest.get("sequence")
    limits = (largest.get("encoder_sequence", sequence), generation_settings.positions) if has_encoder else (sequence,)
    longest = min((limit for limit in limits if limit is not None), default=None)
    return {
        "settings": generation_settings.as_json(),
        "prompts": {
            "longest": longest,
            "positions": generation_settings.positions,
            "encoder": has_encoder,
            "empty": generation_settings.first_token_id,
            "max_text_bytes": text.max_text_bytes(serving, longest or generation_settings.positions),
        },
        "graphs": {
            "decoder": decoder.name,
            "encoder": by_folder[graphs.ENCODER][0].name if has_encoder else None,
            "outputs": {
                "decoder": list(signature.outputs),
                "encoder": list(by_folder[graphs.ENCODER][1].outputs) if has_encoder else [],
            },
            "past": {name: [each.dtype, each.shape[1], each.shape[3]] for name, each in first.items()},
        },
    }
