"""The fields and types of Triton's ModelConfig, which a recipe writes under `package.triton` unchanged."""

# model_config.json has what model_config.proto of triton-inference-server/common says. A test compares the names and
# types with the protobuf of the installed tritonclient. `since` was read from the branches r20.10 to r26.07 of that
# repository. The file exists because a recipe must be readable without protobuf and tritonclient.

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from engine.system import regular

data = ("model_config.json",)
_TABLE = json.loads(regular.read(Path(__file__).with_name("model_config.json")))

MESSAGES: Mapping[str, Mapping[str, str]] = _TABLE["messages"]
"""Name of a protobuf message of ModelConfig -> name of a field -> type of the field.

The type of a field is the name of a scalar, message or enum; `[TYPE]` is a list, and `{KEY:TYPE}` is a map.
"""
ENUMS: Mapping[str, list[str]] = _TABLE["enums"]
ONE_OF: Mapping[str, list[list[str]]] = _TABLE["one_of"]
"""A mapping from the name of a protobuf message to groups of fields that exclude each other.

A protobuf message may have a value in at most one field of each group.
"""
SINCE: Mapping[str, str] = _TABLE["since"]
"""The first release of Triton that has a field (`ModelWarmup.count`) or a value of an enum (`DataType.TYPE_BF16`).

A field or value that is missing here is in every release from 20.10 on.
"""
INTEGER_BOUNDS: Mapping[str, tuple[int, int]] = {
    "int32": (-(1 << 31), (1 << 31) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
    "uint32": (0, (1 << 32) - 1),
    "uint64": (0, (1 << 64) - 1),
}
"""Name of an integer type of protobuf -> its least and its greatest number."""
MODEL_CONFIG = tuple(MESSAGES["ModelConfig"])
OF_A_PYTHON_MODEL = frozenset({
    "name", "max_batch_size", "version_policy", "input", "output", "dynamic_batching", "instance_group", "metric_tags",
    "parameters", "response_cache",
})  # fmt: skip
"""The fields under `package.triton` that a package of one Python model follows; it has no others."""

MODEL_VERSION = 1
"""The version of each model of a package, and the name of the folder that holds it."""
PartName = Literal["tokenizer", "preprocess", "postprocess", "ensemble", "encoder", "decoder", "generate", "stream"]
"""The models that a package may hold beside the main model, by their names in `package.triton.models`."""
GraphPart = Literal["model", "encoder", "decoder"]
GRAPH_PARTS: tuple[GraphPart, ...] = get_args(GraphPart)
"""The parts of a package that are the built model: the single model, or the encoder and the decoder."""
