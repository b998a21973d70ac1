"""Makers of small random image models: checkpoints as they are published, each with its own image processor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import image_configs
import image_files
import image_tokenizers
import tiny_architectures
from image_configs import ROWS

NAMES = tuple(ROWS)
"""Pairs of architecture and task, as `vit/image-classification`."""
LABELS = ("cat", "dog", "bird", "car", "tree")
TEXTS = image_tokenizers.TEXTS
"""Texts that the small tokenizers know."""

_CLOSED = 0.1


def task_of(name: str) -> str:
    """Return the task of a pair."""
    return name.partition("/")[2]


def names(task: str) -> tuple[str, ...]:
    """Return the pairs of a task."""
    return tuple(name for name in NAMES if task_of(name) == task)


def write(name: str, folder: Path, seed: int = 0) -> Path:
    """Save a small random checkpoint: config, safetensors, image processor, and a tokenizer for a text tower."""
    import torch

    row = ROWS[name]
    folder.mkdir(parents=True, exist_ok=True)
    special = getattr(image_tokenizers, row.tokenizer)(folder) if row.tokenizer else {}
    config = _config(name, row, special)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = _new(_class(name, row), config)
        _open_norms(model)
        tiny_architectures.sharpened(model, seed=seed)
        _separate_texts(model)
    if row.processor is not None:
        write_processor(folder, row.processor)
        _settle(model, folder)
    model.save_pretrained(folder, safe_serialization=True)
    return folder


def write_processor(folder: Path, processor: image_configs.Processor) -> None:
    """Save `preprocessor_config.json` as the class of the image processor writes it."""
    settings = {**_defaults(processor.name), **processor.settings}
    text = json.dumps({"image_processor_type": f"{processor.name}ImageProcessor", **settings}, indent=2)
    (folder / "preprocessor_config.json").write_text(text)


def reference(folder: Path, name: str, files: list[Path], texts: list[str] | None = None) -> dict[str, Any]:
    """Return the outputs of `model(**processor(...))` of transformers, with Pillow's image processor, as arrays."""
    import torch
    import transformers
    from transformers.image_utils import load_image

    model = _class(name, ROWS[name]).from_pretrained(folder).eval()
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    inputs = dict(processor([load_image(str(path)) for path in files], return_tensors="pt"))
    if task_of(name) == image_configs.ZERO_SHOT:
        inputs |= tokens(folder, texts or list(TEXTS))
    with torch.no_grad():
        whole = task_of(name) == image_configs.FEATURES and "text_config" in ROWS[name].config
        answer = model.get_image_features(**inputs) if whole else model(**inputs)
    return {key: value.numpy() for key, value in answer.items() if isinstance(value, torch.Tensor)}


def text_reference(folder: Path, name: str, texts: list[str]) -> Any:
    """Return the vector of each text that the text tower of transformers gives."""
    import torch

    model = _class(name, ROWS[name]).from_pretrained(folder).eval()
    with torch.no_grad():
        whole = "text_config" in ROWS[name].config
        answer = (model.get_text_features if whole else model)(**tokens(folder, texts))
    return (answer["text_embeds"] if "text_embeds" in answer else answer["pooler_output"]).numpy()


def tokens(folder: Path, texts: list[str]) -> dict[str, Any]:
    """Return the tokens of texts, padded as the pipeline of transformers pads for the architecture."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    config = transformers.AutoConfig.from_pretrained(folder)
    padding = "max_length" if "siglip" in config.model_type else True
    return dict(tokenizer(texts, padding=padding, truncation=True, return_tensors="pt"))


def _class(name: str, row: image_configs.Row) -> Any:
    """Return the class of the model."""
    import transformers

    if row.model is not None:
        return getattr(transformers, row.model)
    return getattr(transformers, image_configs.AUTO_CLASSES[task_of(name)])


def _new(kind: Any, config: Any) -> Any:
    """Return a random model of a class of transformers, or of one of its auto classes."""
    return kind.from_config(config) if hasattr(kind, "from_config") else kind(config)


def _config(name: str, row: image_configs.Row, special: dict[str, int]) -> Any:
    import transformers

    model_type, _, task = name.partition("/")
    fields = dict(row.config)
    if "text_config" in fields:
        fields["text_config"] = {**fields["text_config"], **special}
    elif row.tokenizer:
        fields |= special
    if task in {image_configs.CLASSIFICATION, image_configs.DETECTION, image_configs.SEGMENTATION}:
        fields["num_labels"] = len(LABELS)
        fields["id2label"] = dict(enumerate(LABELS))
        fields["label2id"] = {label: number for number, label in enumerate(LABELS)}
    return transformers.AutoConfig.for_model(model_type, **fields)


def _defaults(processor: str) -> dict[str, Any]:
    """Return what the image processor writes of itself."""
    import transformers

    kind = getattr(transformers, f"{processor}ImageProcessorPil", None)
    if kind is None:
        return {}
    settings = json.loads(kind().to_json_string())
    return {key: value for key, value in settings.items() if value is not None}


def _open_norms(model: Any) -> None:
    """Let each norm scale by one: some architectures start close to zero, and let nothing of an image through."""
    for module in model.modules():
        weight = getattr(module, "weight", None)
        if "Norm" in type(module).__name__ and weight is not None and weight.abs().mean() < _CLOSED:
            weight.data.fill_(1.0)


def _separate_texts(model: Any) -> None:
    """Let the texts of SigLIP differ, though it reads the padding too, with the scale and bias of trained models."""
    for name, weight in model.named_parameters():
        if name.endswith("token_embedding.weight"):
            weight.data.mul_(6.0)
            weight.data[0] = 0.0
        elif name == "logit_bias":
            model.logit_scale.data.fill_(2.3)
            weight.data.fill_(-2.0)


def _settle(model: Any, folder: Path) -> None:
    """Give the batch norms the statistics of some pictures: untrained, they would let activations grow or vanish."""
    import torch
    import transformers

    norms = [each for each in model.modules() if getattr(each, "running_var", None) is not None]
    if not norms:
        return
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    pictures = [image_files.picture(64, 64, seed=100 + number) for number in range(40)]
    hooks = [norm.register_forward_pre_hook(_keep_statistics) for norm in norms]
    with torch.no_grad():
        model(**processor(pictures, return_tensors="pt"))
    for hook in hooks:
        hook.remove()


def _keep_statistics(norm: Any, inputs: tuple[Any, ...]) -> None:
    """Let a batch norm, frozen or not, hold the mean and the variance of each channel of what comes in."""
    channels = inputs[0].transpose(0, 1).flatten(1)
    norm.running_mean.copy_(channels.mean(1))
    norm.running_var.copy_(channels.var(1) + 1e-3)
