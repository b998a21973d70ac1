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
"""A norm whose scales are smaller, on average, lets nothing of an image through."""
_NO_WORDS = {"vocab_size": 8, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
"""The text tower of a model that reads images alone."""


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
    special = getattr(image_tokenizers, row.tokenizer)(folder) if row.tokenizer else _NO_WORDS
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


class Original:
    """A small image model as transformers runs it, with its own image processor of Pillow and its own tokenizer."""

    def __init__(self, folder: Path, name: str) -> None:
        import transformers

        self.folder, self.task = folder, task_of(name)
        self.has_towers = "text_config" in ROWS[name].config
        self.model = _class(name, ROWS[name]).from_pretrained(folder).eval()
        self.processor = None
        if ROWS[name].processor is not None:
            self.processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")

    def images(self, files: list[Path], texts: list[str] | None = None) -> dict[str, Any]:
        """Return the outputs of `model(**processor(...))` as arrays, and with vectors of images as `image_embeds`.

        Raises ValueError for files whose tensors have different shapes, where the processor does not pad them.
        """
        from transformers.image_utils import load_image

        assert self.processor is not None
        inputs = dict(self.processor([load_image(str(path)) for path in files], return_tensors="pt"))
        if self.task == image_configs.ZERO_SHOT:
            inputs |= tokens(self.folder, texts or list(TEXTS))
        if self.task == image_configs.FEATURES:
            tower = self.model.get_image_features if self.has_towers else self.model
            return _vector(_outputs(tower, inputs), "image_embeds")
        return _outputs(self.model, inputs)

    def texts(self, texts: list[str]) -> dict[str, Any]:
        """Return the outputs of the text tower as arrays, with `text_embeds`, the vector of each text."""
        tower = self.model.get_text_features if self.has_towers else self.model
        return _vector(_outputs(tower, tokens(self.folder, texts)), "text_embeds")


def _outputs(call: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    import torch

    with torch.no_grad():
        answer = call(**inputs)
    return {key: value.numpy() for key, value in answer.items() if isinstance(value, torch.Tensor)}


def _vector(outputs: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the outputs with the vector under a name of its own too, and without the axes that convolutions leave."""
    if "pooler_output" not in outputs:
        return outputs
    rows = outputs["pooler_output"]
    vectors = rows.reshape(len(rows), -1)
    return {name: vectors, **outputs, "pooler_output": vectors}


def reference(folder: Path, name: str, files: list[Path], texts: list[str] | None = None) -> dict[str, Any]:
    """Return the outputs of `model(**processor(...))` of transformers, with Pillow's image processor, as arrays."""
    return Original(folder, name).images(files, texts)


def text_reference(folder: Path, name: str, texts: list[str]) -> Any:
    """Return the vector of each text that the text tower of transformers gives."""
    return Original(folder, name).texts(texts)["text_embeds"]


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
