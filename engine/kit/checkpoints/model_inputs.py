"""Model inputs: what a transformers model takes besides the tokens of a text, by the signature of its `forward`."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from engine.errors import StepError

TOKENS = "input_ids"
FED = (TOKENS, "attention_mask", "token_type_ids")
"""The inputs of an exported model of text that a package's tokenizer gives."""
_LEFT_OUT = frozenset(
    {
        # Tokens in another form, and results of an earlier call.
        "cache", "cache_params", "cross_attention_mask", "cross_attention_states", "decoder_attention_mask",
        "decoder_input_ids", "decoder_inputs_embeds", "decoder_position_ids", "encoder_attention_mask",
        "encoder_hidden_states", "encoder_outputs", "full_text_row_masked_out_mask", "inputs_embeds", "mems",
        "past_buckets_states", "past_key_values", "shared_kv_states", "state",
        # Inputs that the model computes from the tokens or from its config where a caller leaves them out.
        "deepstack_visual_embeds", "global_attention_mask", "head_mask", "input_mask", "lengths", "logits_to_keep",
        "patch_lengths", "per_layer_inputs", "perm_mask", "ple_input_ids", "position_ids", "question_lengths",
        "question_positions", "sequence_id", "target_mapping", "task_type_ids", "visual_pos_masks",
        # Targets of training, beside labels.
        "end_positions", "start_positions",
    }
)  # fmt: skip
"""Tensors that users of transformers leave out when they ask a model about a text."""
_HINT = (
    "export the model to ONNX with all its inputs, name the .onnx file as `source`, and give samples as .npz with one "
    "array per input"
)


def beyond_text(parameters: Mapping[str, str], config: Mapping[str, Any], *, given: Collection[str] = ()) -> list[str]:
    """Return the tensors that a model takes and that a package does not make of a text, such as LayoutLM's `bbox`.

    `parameters` are the names of the arguments of `forward` -> the text of their annotations, and `config` is the
    content of config.json. `given` are the inputs that the checkpoint's own tokenizer gives.
    """
    # An argument without an annotation may be a tensor.
    tensors = [name for name, annotation in parameters.items() if not annotation or "Tensor" in annotation]
    needed = [name for name in tensors if name in given or _is_needed(name, config)]
    return [name for name in needed if name not in FED]


def refuse_beyond_text(
    architecture: str,
    parameters: Mapping[str, str],
    config: Mapping[str, Any],
    *,
    given: Collection[str] = (),
    generates: bool,
) -> None:
    """Raise StepError for a model that takes no tokens, or more tensors than a package makes of a text.

    A model that generates text (`generates`) may take images or sound, because it also answers a text without them.
    """
    beyond = beyond_text(parameters, config, given=given)
    if TOKENS not in parameters:
        raise StepError(f"{architecture} takes no text", [f"its inputs: {', '.join(beyond) or 'none'}"], _HINT)
    if beyond and not generates:
        raise StepError(
            f"{architecture} takes more than a text: {', '.join(beyond)}",
            ["without them its answers would not be those that it was trained for"],
            _HINT,
        )


def declared(config: Mapping[str, Any]) -> tuple[str, dict[str, str]] | None:
    """Return the architecture that config.json names, and the arguments of its `forward`, from transformers' source.

    The source is read and not imported, because an import of transformers takes seconds. None where transformers is not
    installed or its source does not have the architecture.
    """
    names, family = config.get("architectures"), config.get("model_type")
    if not isinstance(names, list) or not names or not isinstance(names[0], str) or not isinstance(family, str):
        return None
    for path in _sources(family.replace("-", "_")):
        classes = {node.name: node for node in ast.parse(path.read_bytes()).body if isinstance(node, ast.ClassDef)}
        forward = _forward(names[0], classes)
        if forward is not None:
            return names[0], _parameters(forward)
    return None


def _is_needed(name: str, config: Mapping[str, Any]) -> bool:
    """Whether users of transformers give a model the tensor `name` when they ask it about a text."""
    if name == "langs":  # XLM adds an embedding of the text's language to each token
        return bool(config.get("use_lang_emb", True)) and config.get("n_langs", 1) != 1
    if name == "lang_ids":  # X-MOD has layers for each language
        return not config.get("default_language")
    if name.endswith(("label", "labels")):  # a target of training, as `next_sentence_label` of BertForPreTraining
        return False
    return name not in _LEFT_OUT and not name.startswith(("output_", "return_"))


def _sources(folder: str) -> list[Path]:
    """Return the files of transformers in which a family's models are written; [] where transformers has none."""
    spec = importlib.util.find_spec("transformers")
    if spec is None or not spec.submodule_search_locations or not folder.isidentifier():
        return []
    return sorted((Path(spec.submodule_search_locations[0]) / "models" / folder).glob("modeling_*.py"))


def _forward(name: str, classes: Mapping[str, ast.ClassDef]) -> ast.FunctionDef | None:
    """Return the method `forward` of a class, its own or the one of its first base that has one in the same file."""
    node = classes.get(name)
    if node is None:
        return None
    own = next((part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "forward"), None)
    bases = (base.id for base in node.bases if isinstance(base, ast.Name))
    return own or next((method for base in bases if (method := _forward(base, classes))), None)


def _parameters(forward: ast.FunctionDef) -> dict[str, str]:
    arguments = [*forward.args.posonlyargs, *forward.args.args, *forward.args.kwonlyargs][1:]
    return {argument.arg: ast.unparse(argument.annotation) if argument.annotation else "" for argument in arguments}
