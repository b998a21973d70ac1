"""PyTorch models: a transformers checkpoint as a torch module with named inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from engine import tasks
from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import model_inputs, unbuildable
from engine.kit.generation import modules
from engine.kit.inputs.token_rows import Vocabulary
from engine.kit.onnx.onnx_files import Input
from engine.kit.reference import (
    export_ways,
    families,
    image_inputs,
    own_tokenizer,
    pretrained,
    timm_models,
    towers,
    vision_models,
)
from engine.kit.reference.model_loading import HeadOptions
from engine.kit.reference.own_tokenizer import OwnTokenizer
from engine.recipe import image_input

if TYPE_CHECKING:
    import numpy as np
    import torch

    from engine.recipe.image_input import Images
    from engine.tasks import Task


def load(
    checkpoint: Path, task_name: str, *, images: Images | None = None, **head: Unpack[HeadOptions]
) -> torch.nn.Module:
    """Return the model as a torch module in fp32, eval mode and eager attention, from local safetensors only.

    Where `images` is given, `timm_models.load` or `vision_models.load` loads the model. For a model that generates
    text, `generation.modules.whole` makes the module. A model that reads text and generates none takes int64 tensors
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
    if images is not None and task.takes_images:
        return vision_models.load(checkpoint, task_name, images, **head)
    with pretrained.silent():
        tokenizer = own_tokenizer.load(checkpoint)
    config = checkpoints.config(checkpoint)
    way = export_ways.of(config, images=False)
    model, _ = pretrained.load(
        checkpoint, task, way, head, refuse=lambda config, loader: _refuse(config, task, loader, tokenizer)
    )
    families.refuse_without_padding(model, task)
    names = families.input_names(model, tokenizer)
    if task.generates:
        families.refuse_token_types(model, names, task)
        module = modules.whole(model)
    elif task.embeds and export_ways.gives_embeddings(config, type(model).__name__):
        specs = image_inputs.texts(config, ("batch",))
        module = modules.by_position(model, towers.text_embeds, specs, ("text_embeds",))
        module.as_user = towers.text_embeds
    else:
        specs = {name: Input(name, "int64", ("batch", "sequence")) for name in names}
        # A model that classifies a text by the decoder's state at the text's last end token.
        pools_last_end = model.config.is_encoder_decoder and hasattr(model, "classification_head")
        answer = _answer_of_last_end if pools_last_end else _answer
        module = modules.by_position(model, answer, specs, task.outputs)
    module.way = way
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


def _supported(checkpoint: Path, name: str, images: Images | None) -> Task:
    """Return the installed task whose name is `name`.

    Raises StepError for a model of images where the recipe does not say so, or for a task that has no transformers
    class.
    """
    checkpoints.refuse_unnamed(checkpoint, name, images=images is not None)
    task = tasks.known(name)
    if task is None or task.auto_class is None:
        supported = (task.name for task in tasks.every() if task.auto_class)
        raise StepError(f"{name} is not supported yet for a PyTorch model", [f"supported: {', '.join(supported)}"])
    return task


def _refuse(config: Any, task: Task, loader: str, tokenizer: OwnTokenizer | None) -> None:
    """Raise StepError where the model of `config` cannot do a task of texts, or takes more than a text."""
    families.refuse_other(config, task, loader)
    kind = families.model_class(config, loader)
    tower = task.embeds and export_ways.gives_embeddings(config.to_dict(), kind.__name__)
    if tower and hasattr(kind, "get_text_features"):
        return
    model_inputs.refuse_beyond_text(
        kind.__name__,
        families.parameters(kind),
        config.to_dict(),
        given=() if tokenizer is None else tokenizer.names,
        generates=task.generates is not None,
    )


def _answer(model: Any, tensors: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
    answers: Mapping[str, torch.Tensor] = model(**tensors)
    return answers


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
