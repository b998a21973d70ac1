"""Vision models: a transformers checkpoint of images as a torch module with named inputs and outputs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from engine import tasks
from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import exportable
from engine.kit.generation import modules
from engine.kit.reference import constant_parts, export_ways, families, image_inputs, pretrained, towers
from engine.kit.reference.image_inputs import MASK, PIXELS
from engine.kit.reference.model_loading import HeadOptions
from engine.text import reasons

if TYPE_CHECKING:
    import numpy as np
    import torch

    from engine.kit.onnx.onnx_files import Input
    from engine.recipe.image_input import Images
    from engine.tasks import Task

    Tensors = Mapping[str, torch.Tensor]

_SIZE = (96, 128)
"""The height and the width of the images that trace a model with free axes: multiples of 32, and no square."""


def load(checkpoint: Path, task_name: str, images: Images, **head: Unpack[HeadOptions]) -> torch.nn.Module:
    """Return the model as a torch module in fp32 and eval mode, from local safetensors only.

    `image_inputs.specs` describes the inputs. The outputs are those of the task. A model of embeddings gives
    `image_embeds` of a tower, else `pooler_output` [batch, width] where the checkpoint has the pooler's weights, else
    `last_hidden_state`.

    Raises StepError where the checkpoint cannot be read, weights are missing, or the model takes other inputs.
    """
    task, config = tasks.find(task_name), checkpoints.config(checkpoint)
    way = export_ways.of(config, images=True)
    specs = image_inputs.specs(checkpoint, task_name, images)
    model, missing = pretrained.load(
        checkpoint, task, way, head, refuse=lambda config, loader: _refuse(config, task, loader)
    )
    options = _options(model, specs, image_inputs.native_size(config))
    if task.takes_texts:
        answer = functools.partial(towers.logits_per_image, **options)
    elif task.embeds:
        pooled = not any(name.startswith("pooler") for name in missing)
        tower = export_ways.gives_embeddings(config, type(model).__name__)
        answer = functools.partial(_features, tower=tower, pooled=pooled, options=options)
    else:
        answer = functools.partial(_outputs, names=task.outputs, options=options)
    module = modules.by_position(model, answer, specs, ())
    module.way = way
    module.as_user = _as_user if task.takes_texts else answer
    module.output_names = _tried(module, answer)
    return module


def is_one(module: torch.nn.Module) -> bool:
    """Whether the loaded model is one of transformers that takes images."""
    return PIXELS in module.input_names


def is_free(module: torch.nn.Module) -> bool:
    """Whether the loaded model takes images of any size."""
    return is_one(module) and any(isinstance(extent, str) for extent in module.input_specs[PIXELS].shape[1:])


def example(
    module: torch.nn.Module, batch: int, size: tuple[int, int] = _SIZE, *, texts: int = 2, tokens: int = 9
) -> dict[str, np.ndarray]:
    """Return random inputs for a loaded model, with the given extents of free axes; the number of images is the seed.

    The second image and those behind it are smaller than the first where the model takes a mask of the padding.
    """
    import numpy as np

    generator = np.random.default_rng(batch)
    extents = {"batch": batch, "height": size[0], "width": size[1], "texts": texts, "sequence": tokens}
    shapes = {
        name: tuple(extents[axis] if isinstance(axis, str) else axis for axis in spec.shape)
        for name, spec in module.input_specs.items()
    }
    tensors: dict[str, np.ndarray] = {PIXELS: generator.standard_normal(shapes[PIXELS], np.float32)}
    if MASK in shapes:
        mask = np.ones(shapes[MASK], np.int64)
        mask[1:, mask.shape[1] * 3 // 4 :] = 0
        mask[1:, :, mask.shape[2] * 2 // 3 :] = 0
        tensors[MASK] = mask
        tensors[PIXELS] *= mask[:, None]
    if "input_ids" in shapes:
        known = module.model.config.get_text_config().vocab_size
        tensors["input_ids"] = generator.integers(0, known, shapes["input_ids"])
    if "attention_mask" in shapes:
        mask = np.ones(shapes["attention_mask"], np.int64)
        mask[:, 1:, -2:] = 0
        tensors["attention_mask"] = mask
    return tensors


def to_trace(module: torch.nn.Module) -> torch.nn.Module:
    """Return the module that an exporter traces: a copy with constant parts, or the module itself."""
    import torch

    inputs = example(module, 1)
    tensors = tuple(torch.from_numpy(inputs[name]) for name in module.input_names)
    traced: torch.nn.Module = constant_parts.replaced(module, module.way, tensors, fixed=not is_free(module))
    return traced


def _refuse(config: Any, task: Task, loader: str) -> None:
    """Raise StepError for a model that does not turn images alone, or images and texts, into the task's outputs."""
    families.refuse_classless(config, task, loader)
    kind = families.model_class(config, loader)
    parameters = inspect.signature(kind.forward).parameters  # type: ignore[attr-defined]
    needed = [name for name, each in parameters.items() if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD]
    other = [name for name in needed[1:] if name != PIXELS]
    if PIXELS not in parameters or (other and not task.takes_texts):
        raise StepError(
            f"{kind.__name__} takes no image alone",
            [f"its inputs: {', '.join(list(parameters)[1:6])}"],
            exportable.OWN_EXPORT,
        )


def _options(model: Any, specs: Mapping[str, Input], native: tuple[int, int] | None) -> dict[str, object]:
    """Return the further arguments of a call: to interpolate positions for images of another size than the model's."""
    size = specs[PIXELS].shape[2:]
    takes = inspect.signature(getattr(model, "get_image_features", model.forward)).parameters
    return {"interpolate_pos_encoding": True} if "interpolate_pos_encoding" in takes and size != native else {}


def _outputs(model: Any, tensors: Tensors, *, names: tuple[str, ...], options: Mapping[str, Any]) -> dict[str, Any]:
    answers = model(**tensors, **options)
    return {name: answers[name] for name in names}


def _features(
    model: Any, tensors: Tensors, *, tower: bool, pooled: bool, options: Mapping[str, Any]
) -> dict[str, torch.Tensor]:
    if tower:
        return {"image_embeds": towers.image_embeds(model, tensors, **options)}
    answers = model(**tensors, **options)
    if pooled and answers.get("pooler_output") is not None:
        vector = answers["pooler_output"]
        return {"pooler_output": vector.flatten(1) if vector.ndim > 2 else vector}  # convolutions keep axes of the extent 1
    return {"last_hidden_state": answers["last_hidden_state"]}


def _as_user(model: Any, tensors: Tensors) -> dict[str, torch.Tensor]:
    return {"logits_per_image": model(**tensors).logits_per_image}


def _tried(module: torch.nn.Module, answer: Any) -> tuple[str, ...]:
    """Run the model on one image, and return the names of its outputs.

    Raises StepError where it cannot take such images, or scores texts otherwise than its towers' embeddings tell.
    """
    import torch

    inputs = example(module, 1)
    tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
    try:
        with torch.inference_mode():
            answers = answer(module.model, tensors)
            row = {name: tensor[0] if name != PIXELS else tensor for name, tensor in tensors.items()}
            same = "logits_per_image" not in answers or torch.allclose(
                _as_user(module.model, row)["logits_per_image"], answers["logits_per_image"], rtol=1e-3, atol=1e-3
            )
    except Exception as error:  # any layer may fail on an unusual size
        shape = " x ".join(map(str, inputs[PIXELS].shape))
        raise StepError(
            f"{type(module.model).__name__} cannot take images of this size: {shape}",
            reasons.facts(error),
            "leave preprocess.size out, or take a multiple of the model's patches",
        ) from error
    if not same:
        raise StepError(f"{type(module.model).__name__} scores texts in a way of its own, which is not supported")
    return tuple(answers)
