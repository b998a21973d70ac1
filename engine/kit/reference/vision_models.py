"""Vision models: a transformers model of images, or its tower of texts, as a torch module with named tensors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import exportable
from engine.kit.generation import modules
from engine.kit.reference import export_ways, image_inputs
from engine.kit.reference.image_inputs import MASK, PIXELS
from engine.text import reasons

if TYPE_CHECKING:
    import numpy as np
    import torch

    from engine.recipe.image_input import Images
    from engine.tasks import Task

    Tensors = Mapping[str, torch.Tensor]

_SIZE = (96, 128)
"""The height and the width of the images that trace a model with free axes: multiples of 32, and no square."""


def module_of(model: Any, missing: Collection[str], checkpoint: Path, task: Task, images: Images) -> torch.nn.Module:
    """Return a loaded model of images as a torch module; `missing` are the names of weights that the checkpoint lacks.

    `image_inputs.specs` describes the inputs. The outputs are those of the task. A model of embeddings gives
    `image_embeds` of a tower, else `pooler_output` [batch, width] where the checkpoint has the pooler's weights, else
    `last_hidden_state`. Raises StepError for a model that cannot take the images or compares texts in another way.
    """
    config, specs = checkpoints.config(checkpoint), image_inputs.specs(checkpoint, task.name, images)
    # The model interpolates its positions for images of another size than its own.
    takes = inspect.signature(getattr(model, "get_image_features", model.forward)).parameters
    is_other = specs[PIXELS].shape[2:] != image_inputs.native_size(config)
    options = {"interpolate_pos_encoding": True} if is_other and "interpolate_pos_encoding" in takes else {}
    if task.takes_texts:
        answer = functools.partial(_logits_per_image, options=options)
    elif task.embeds and export_ways.gives_embeddings(config, type(model).__name__):
        answer = functools.partial(_tower, "image", options=options)
    elif task.embeds:
        pooled = not any(name.startswith("pooler") for name in missing)
        answer = functools.partial(_features, pooled=pooled, options=options)
    else:
        answer = functools.partial(_outputs, names=task.outputs, options=options)
    module = modules.by_position(model, answer, specs, ())
    module.as_user = _as_user if task.takes_texts else answer
    module.output_names = _tried(module)
    return module


def module_of_texts(model: Any, config: Mapping[str, Any]) -> torch.nn.Module:
    """Return a loaded model with a tower of texts as a torch module that gives `text_embeds` [batch, width]."""
    answer = functools.partial(_tower, "text", options={})
    module = modules.by_position(model, answer, image_inputs.texts(config, ("batch",)), ("text_embeds",))
    module.as_user = answer
    return module


def refuse_other(kind: type, task: Task) -> None:
    """Raise StepError for a class of models that does not turn images alone, or beside texts, into answers."""
    parameters = inspect.signature(kind.forward).parameters  # type: ignore[attr-defined]
    with_texts = task.takes_texts or hasattr(kind, "get_image_features")
    if PIXELS not in parameters or ("input_ids" in parameters and not with_texts):
        facts = [f"its inputs: {', '.join(list(parameters)[1:6])}"]
        raise StepError(f"{kind.__name__} does not take images alone", facts, exportable.OWN_EXPORT)


def is_one(module: torch.nn.Module) -> bool:
    """Whether the loaded model is one of transformers that takes images."""
    return PIXELS in module.input_names


def example(
    module: torch.nn.Module, batch: int, size: tuple[int, int] = _SIZE, *, texts: int = 2, tokens: int = 9
) -> dict[str, np.ndarray]:
    """Return random inputs for a loaded model, with the given extents of free axes; the number of images is the seed.

    The second image and those behind it are smaller than the first where the model takes a mask of the padding.
    """
    import numpy as np

    generator = np.random.default_rng(batch)
    extents = {"batch": batch, "height": size[0], "width": size[1], "texts": texts, "sequence": tokens}
    tensors: dict[str, np.ndarray] = {}
    for name, spec in module.input_specs.items():
        shape = tuple(extents[axis] if isinstance(axis, str) else axis for axis in spec.shape)
        if name == PIXELS:
            tensors[name] = generator.standard_normal(shape, np.float32)
        elif name == "input_ids":
            tensors[name] = generator.integers(0, module.model.config.get_text_config().vocab_size, shape)
        else:
            tensors[name] = np.ones(shape, np.int64)
            tensors[name][1:, shape[1] * 3 // 4 :] = 0 if name == MASK else 1
            tensors[name][..., 1:, shape[-1] * 2 // 3 :] = 0
    return tensors


def _outputs(model: Any, tensors: Tensors, *, names: tuple[str, ...], options: Mapping[str, Any]) -> dict[str, Any]:
    answers = model(**tensors, **options)
    return {name: answers[name] for name in names}


def _features(model: Any, tensors: Tensors, *, pooled: bool, options: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    answers = model(**tensors, **options)
    vector = answers.get("pooler_output") if pooled else None
    if vector is None:
        return {"last_hidden_state": answers["last_hidden_state"]}
    is_flat = len(vector.shape) == 2  # noqa: PLR2004 - models of convolutions keep two axes more, of the extent 1
    return {"pooler_output": vector if is_flat else vector.flatten(1)}


def _tower(kind: str, model: Any, tensors: Tensors, *, options: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Return the embeddings of images or texts [batch, width], projected where the model has a projection."""
    name, features = f"{kind}_embeds", getattr(model, f"get_{kind}_features", model)
    answers = features(**tensors, **options)
    return {name: answers.get(name, answers.get("pooler_output"))}


def _logits_per_image(model: Any, tensors: Tensors, *, options: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Return `logits_per_image` [batch, texts]: the scores of each image with the texts of its own row.

    The model itself would score each image with the texts of all rows, so that a server could not join the rows of
    several clients.
    """
    tokens = {name: tensor.flatten(0, 1) for name, tensor in tensors.items() if name != PIXELS}
    images = _tower("image", model, {PIXELS: tensors[PIXELS]}, options=options)["image_embeds"]
    texts = _tower("text", model, tokens, options={})["text_embeds"]
    images, texts = (each / each.norm(dim=-1, keepdim=True) for each in (images, texts))
    rows = texts.reshape(*tensors["input_ids"].shape[:2], texts.shape[-1])
    scores = (rows @ images[:, :, None])[:, :, 0] * model.logit_scale.exp()
    bias = getattr(model, "logit_bias", None)
    return {"logits_per_image": scores if bias is None else scores + bias}


def _as_user(model: Any, tensors: Tensors) -> dict[str, torch.Tensor]:
    return {"logits_per_image": model(**tensors).logits_per_image}


def _tried(module: torch.nn.Module) -> tuple[str, ...]:
    """Run the model on one image, and return the names of its outputs. Raises StepError as `module_of` does."""
    import torch

    tensors = {name: torch.from_numpy(array) for name, array in example(module, 1).items()}
    row = {name: tensor if name in (PIXELS, MASK) else tensor[0] for name, tensor in tensors.items()}
    named, shape = type(module.model).__name__, " x ".join(map(str, tensors[PIXELS].shape))
    try:
        with torch.inference_mode():
            answers: dict[str, torch.Tensor] = module.answer(module.model, tensors)
            again = module.as_user(module.model, row)
    except Exception as error:  # any layer may fail on an unusual size
        hint = "leave preprocess.size out, or take a multiple of the model's patches"
        raise StepError(f"{named} cannot take images of this size: {shape}", reasons.facts(error), hint) from error
    if not all(torch.allclose(answers[name], again[name], rtol=1e-3, atol=1e-3) for name in answers):
        raise StepError(f"{named} answers otherwise to a row alone than its parts tell: that is not supported")
    return tuple(answers)
