"""PyTorch models: a transformers checkpoint as a torch module with named inputs and outputs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from engine import tasks
from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import model_inputs, unbuildable
from engine.kit.generation import modules
from engine.kit.inputs.token_rows import Vocabulary
from engine.kit.onnx.onnx_files import Input
from engine.kit.reference import export_ways, families, own_tokenizer, timm_models, vision_models
from engine.kit.reference.model_loading import HeadOptions, quiet, seeded
from engine.kit.reference.own_tokenizer import OwnTokenizer
from engine.recipe import image_input
from engine.text import reasons

if TYPE_CHECKING:
    import numpy as np
    import torch

    from engine.recipe.image_input import Images
    from engine.tasks import Task

_UNLOADED = (
    "do config.json and the weights belong together, and to the installed transformers? "
    "a model whose code is not part of transformers: export it to ONNX, and give the .onnx file as the source"
)
"""The hint for a checkpoint that transformers cannot load."""
_LISTED = 8
"""The largest number of weights that an error names."""


def load(
    checkpoint: Path, task_name: str, *, images: Images | None = None, **head: Unpack[HeadOptions]
) -> torch.nn.Module:
    """Return the model as a torch module in fp32, eval mode and eager attention, from local safetensors only.

    Where `images` is given, `timm_models.load` or `vision_models.module_of` makes the module, and for a model that
    generates text, `generation.modules.whole`. A model that reads text and generates none takes int64 tensors
    [batch, sequence] in the order of `module.input_names`; `module.input_specs` describes the tensors. The model
    returns a tuple in the order of `module.output_names`: `last_hidden_state` [batch, sequence, hidden], `text_embeds`
    [batch, width] of a tower, `logits` [batch, labels] or [batch, sequence, labels or vocabulary], or `start_logits`
    and `end_logits` [batch, sequence].

    Raises StepError where the task is not supported, the checkpoint cannot be read, or weights are missing. Only
    weights of the head may be missing, and only where `random_head` (and `num_labels`, for a classifier) allow it.
    """
    checkpoints.refuse_other_library(checkpoint, image_input.library(images))
    if images is not None and images.library == "timm":
        return timm_models.load(checkpoint, task_name, images, **head)
    task = _supported(checkpoint, task_name, images)
    unbuildable.refuse(checkpoint, task.name)
    with _quiet():
        tokenizer = None if task.takes_images else own_tokenizer.load(checkpoint)
    with _quiet(), seeded():
        model, loading = _from_pretrained(checkpoint, task, tokenizer, head.get("num_labels"))
    _explain(model, loading, task, head)
    if images is not None and task.takes_images:
        return vision_models.module_of(model, loading["missing_keys"], checkpoint, task, images)
    families.refuse_without_padding(model, task)
    names = families.input_names(model, tokenizer)
    if task.generates:
        families.refuse_token_types(model, names, task)
        module = modules.whole(model)
    elif _is_tower(checkpoints.config(checkpoint), type(model), task):
        module = vision_models.module_of_texts(model, checkpoints.config(checkpoint))
    else:
        specs = {name: Input(name, "int64", ("batch", "sequence")) for name in names}
        # A model that classifies a text by the decoder's state at the text's last end token.
        pools_last_end = model.config.is_encoder_decoder and hasattr(model, "classification_head")
        answer = _answer_of_last_end if pools_last_end else _answer
        module = modules.by_position(model, answer, specs, task.outputs)
    module.tokenizer = tokenizer
    return module


def call(module: torch.nn.Module, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Run the model, and return its outputs by name. Tensors in `inputs` that the model does not take are ignored.

    Raises StepError where `inputs` lacks an input of the model.
    """
    import torch

    missing = [name for name in module.input_names if name not in inputs]
    if missing:
        raise StepError(f"the model takes {', '.join(module.input_names)}", [f"missing: {', '.join(missing)}"])
    with torch.inference_mode():
        answers = module(*(torch.from_numpy(inputs[name]) for name in module.input_names))
    return {name: answer.numpy() for name, answer in zip(module.output_names, answers, strict=True)}


def call_as_user(module: torch.nn.Module, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return what a user of transformers gets from `model(**inputs)`, by the names of the module's outputs.

    Inputs that the model's `forward` does not name are left out, because `forward` fails on them or ignores them.
    """
    import torch

    parameters = families.parameters(type(module.model))
    tensors = {name: torch.from_numpy(array) for name, array in inputs.items() if name in parameters}
    with torch.inference_mode():
        answers = getattr(module, "as_user", _answer)(module.model, tensors)
    return {name: answers[name].numpy() for name in module.output_names}


def complete(module: torch.nn.Module, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the inputs.

    An encoder-decoder model also gets the decoder's tokens, which `generation.modules.own_answer` computes.
    """
    import torch

    if modules.DECODER_TOKENS not in module.input_names:
        return dict(inputs)
    ids, mask = (torch.from_numpy(inputs[name]) for name in ("input_ids", "attention_mask"))
    return {**inputs, modules.DECODER_TOKENS: modules.own_answer(module, ids, mask).numpy()}


def vocabulary(module: torch.nn.Module) -> Vocabulary:
    """Return the number of token ids and of token types that a loaded model has embeddings for."""
    config = module.model.config.get_text_config()  # of a model of several modalities, the part that reads text
    default = families.TYPES if "token_type_ids" in module.input_names else 1
    types = getattr(config, "type_vocab_size", None) or default
    if not hasattr(config, "vocab_size"):
        raise StepError(
            f"{type(module.model).__name__} has no vocabulary: a tokenizer's tokens are not its inputs",
            ["config.json has no vocab_size"],
            "export the model to ONNX yourself, and give the .onnx file as `source:` and tensors (.npz) as samples",
        )
    return Vocabulary(tokens=config.vocab_size, types=types, pad=getattr(config, "pad_token_id", 0) or 0)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the progress bars, warnings and advice of transformers and torch out of the log."""
    from transformers.utils import logging as progress

    bars = progress.is_progress_bar_enabled()
    progress.disable_progress_bar()
    try:
        with quiet():
            yield
    finally:
        if bars:
            progress.enable_progress_bar()


def _supported(checkpoint: Path, name: str, images: Images | None) -> Task:
    """Return the installed task whose name is `name`.

    Raises StepError for a task that has no transformers class, or where the recipe does not say that the model takes
    images.
    """
    checkpoints.refuse_unnamed(checkpoint, name, images=images is not None)
    task = tasks.known(name)
    if task is None or task.auto_class is None:
        supported = (task.name for task in tasks.every() if task.auto_class)
        raise StepError(f"{name} is not supported yet for a PyTorch model", [f"supported: {', '.join(supported)}"])
    return task


def _from_pretrained(
    checkpoint: Path, task: Task, tokenizer: OwnTokenizer | None, num_labels: int | None
) -> tuple[Any, dict[str, Any]]:
    """Return the model and the loading info of transformers: missing, unexpected and mismatched weights."""
    import torch
    import transformers

    options: dict[str, object] = {} if num_labels is None else {"num_labels": num_labels}
    try:
        config = transformers.AutoConfig.from_pretrained(
            str(checkpoint), local_files_only=True, trust_remote_code=False, **options
        )
        families.refuse_other(config, task, _class_of(config, task))
        kind, fields = families.model_class(config, _class_of(config, task)), config.to_dict()
        if task.takes_images:
            vision_models.refuse_other(kind, task)
        elif not _is_tower(fields, kind, task):
            model_inputs.refuse_beyond_text(
                kind.__name__,
                families.parameters(kind),
                fields,
                given=() if tokenizer is None else tokenizer.names,
                generates=task.generates is not None,
            )
        config.use_cache = False
        model, loading = getattr(transformers, _class_of(config, task)).from_pretrained(
            str(checkpoint),
            config=config,
            attn_implementation=export_ways.of(fields, images=task.takes_images).attention,
            dtype=torch.float32,
            ignore_mismatched_sizes=True,  # `_explain` reports mismatched sizes in the terms of a recipe
            local_files_only=True,
            output_loading_info=True,
            trust_remote_code=False,
            use_safetensors=True,
        )
    except StepError:
        raise
    except Exception as error:  # transformers, safetensors and torch each raise exceptions of their own
        unbuildable.refuse_quantized(checkpoint)
        facts = reasons.facts(error, without=f"{checkpoint}/")
        raise StepError(f"the checkpoint cannot be loaded for {task.name}", facts, _UNLOADED) from error
    return model, loading


def _class_of(config: Any, task: Task) -> str:
    """Return the name of the transformers class that loads a model.

    The class of a tower is the architecture's own, because `AutoModel` leaves out the projection of some towers and
    lacks others. The class is `task.encoder_class` where the architecture's name ends with `EncoderModel`, else
    `task.auto_class`.
    """
    architecture = str(next(iter(getattr(config, "architectures", None) or ()), ""))
    if task.embeds and architecture.endswith(("WithProjection", "TextModel", "VisionModel")):
        return architecture
    alone = task.encoder_class is not None and architecture.endswith("EncoderModel")
    return str(task.encoder_class if alone else task.auto_class)


def _is_tower(fields: Mapping[str, Any], kind: type, task: Task) -> bool:
    """Whether a model gives embeddings of texts that are compared with those of images."""
    return task.embeds and export_ways.gives_embeddings(fields, kind.__name__)


def _answer(model: Any, tensors: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
    answers: Mapping[str, torch.Tensor] = model(**tensors)
    return answers


def _explain(model: Any, loading: Mapping[str, Any], task: Task, head: HeadOptions) -> None:
    """Print which weights of the checkpoint are not used. Raises StepError where weights of the model are missing."""
    # The weights of a pooler have no influence on hidden states.
    missing = sorted(name for name in loading["missing_keys"] if not (task.embeds and name.startswith("pooler")))
    misfits = {
        name: f"{name}: {list(shape)} in the weights, {list(config_shape)} by the config"
        for name, shape, config_shape in sorted(loading["mismatched_keys"])
    }
    body = [name for name in (*missing, *misfits) if _is_body(model, name)]
    if body:
        raise StepError(
            f"the checkpoint's weights do not make a {type(model).__name__}",
            [*(misfits.get(name, f"missing: {name}") for name in body[:_LISTED]), *_more(body)],
            "do config.json and the safetensors belong together?",
        )
    if missing or misfits:
        _judge_head([*missing, *misfits], list(misfits.values()), task, head)
    unused = sorted(loading["unexpected_keys"])
    if unused:
        print(f"{len(unused)} weights of the checkpoint are not needed for {task.name}: {unused[0]}, ...")


def _judge_head(weights: list[str], misfits: list[str], task: Task, head: HeadOptions) -> None:
    """Raise StepError unless the recipe allows random weights in the head.

    `weights` are the names of the weights that are missing or do not fit.
    """
    classifies = task.classes is not None
    num_labels = head.get("num_labels")
    if head.get("random_head", False) and (num_labels is not None or not classifies):
        print(f"the head is random, as the recipe asks: {', '.join(weights)}")
        return
    if misfits and num_labels is None:
        raise StepError(
            "the checkpoint's head does not fit its config.json",
            [*misfits, *_more(weights)],
            "give `id2label` and `label2id` in config.json an entry for each class of the weights",
        )
    fields = "num_labels and random_head: true" if classifies else "random_head: true"
    raise StepError(
        f"the checkpoint's head does not fit num_labels: {num_labels}"
        if misfits
        else f"the checkpoint has no head for {task.name}",
        [*(misfits or [f"missing: {name}" for name in weights[:_LISTED]]), *_more(weights)],
        f"choose a checkpoint made for {task.name}, or allow a random head with {fields} under model:",
    )


def _is_body(model: Any, name: str) -> bool:
    """Whether a weight belongs to the base model that all heads share. A pooler counts as part of the head."""
    prefix = f"{model.base_model_prefix}."
    bare = model.base_model is model
    return (bare or name.startswith(prefix)) and not name.removeprefix(prefix).startswith("pooler")


def _more(names: list[str]) -> list[str]:
    """Return a line with the number of weights that an error leaves out; [] where the error lists all weights."""
    return [f"... and {len(names) - _LISTED} more"] if len(names) > _LISTED else []


def _answer_of_last_end(model: Any, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return `logits` [batch, classes], as the model's own `forward` computes them for each row alone.

    `forward` refuses a batch whose rows have different numbers of end tokens, such as a text beside a pair of texts. A
    graph that was traced from `forward` would not refuse such a batch, and would mix up its rows.
    """
    import torch

    ids = tensors["input_ids"]
    shifted = {"decoder_input_ids": model._shift_right(ids)} if hasattr(model, "_shift_right") else {}  # noqa: SLF001 - T5 has no public name for it
    states = model.base_model(**tensors, **shifted).last_hidden_state
    places = torch.arange(ids.shape[1], device=ids.device)
    last = torch.where(ids == model.config.eos_token_id, places, torch.zeros_like(places)).amax(dim=1)
    pooled = states[torch.arange(ids.shape[0], device=ids.device), last]
    return {"logits": model.classification_head(pooled)}
