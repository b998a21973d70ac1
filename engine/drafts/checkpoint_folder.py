"""Checkpoint folder: the draft of a model of transformers, sentence-transformers or timm, by its config files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine import tasks
from engine.drafts import device, samples
from engine.drafts.draft import Draft, SampleFile
from engine.errors import StepError, UsageError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import json_files, licenses, model_files, published, sentences
from engine.runtimes import axes
from engine.tasks import Task

_LONG, _USUAL, _SHORT = 512, 128, 16
_PROMPT = 128
_SIDE = 224
_ANOTHER_KIND = "name one of these with --task; export a model of another kind to ONNX, and name the .onnx file"


def add(draft: Draft, place: Path, *, task: str | None, on: str | None, repository: str | None = None) -> None:
    """Fill a draft from the config files in `place`, which are of a `repository` of the hub, if one is named.

    Raises UserError for a model that cannot be built.
    """
    if task is None:
        checkpoints.refuse_other_kind(place, repository or str(place))
    purpose = _purpose(place, task)
    published.refuse(place, task)
    layout = checkpoints.kind(place)
    draft.about.append(_about(place, purpose))
    draft.about.append(licenses.in_words(place))
    draft.put("model.task", purpose.name, "as --task names it" if task else "as the model's own files name it")
    if layout == "transformers":
        _put_weights(draft, place)
    elif repository is None:
        draft.put("model.library", layout, "which loads the model")
    is_gpu = device.put(draft, on, generates=purpose.generates is not None)
    if is_gpu and purpose.generates is not None:
        raise UsageError(f"models for {purpose.name} are built for CPUs only", hint="say --device cpu")
    if purpose.takes_images:
        _put_images(draft, place, purpose)
    else:
        _put_texts(draft, place, purpose)
    draft.put("package.triton.name", draft.fields["name"])


def _purpose(place: Path, task: str | None) -> Task:
    """Return the task of a model. Raises UserError where neither --task nor the model's files name one."""
    try:
        return tasks.find(checkpoints.task(place, task))
    except StepError as error:
        hint = error.hint if task else _ANOTHER_KIND
        raise UsageError(error.what, error.facts, hint) from None


def _about(place: Path, purpose: Task) -> str:
    fields = checkpoints.config(place)
    named = checkpoints.architecture(place) or fields.get("architecture") or fields.get("model_type") or "unknown"
    pooled = "; modules.json pools its answers into one vector of a text" if sentences.has_pooling(place) else ""
    return f"{named}, for {purpose.name}{pooled}."


def _put_weights(draft: Draft, place: Path) -> None:
    names, _ = model_files.listing(place)
    chosen = model_files.weights_of(names)
    if chosen and chosen[0] in {model_files.PICKLE, model_files.PICKLE_INDEX}:
        draft.put("model.weights", "pickle-tensors-only", "the model has no safetensors: its pickle is converted once")


def _put_images(draft: Draft, place: Path, purpose: Task) -> None:
    """Set the profile, the shapes, the samples and the entry of a model of images."""
    free = axes.free(checkpoints.axes(place)) or ("batch",)
    sizes = {"batch": [1, 1, 8], **_sides(place), "texts": [1, len(purpose.example), 8]}
    sizes["sequence"] = [1, _SHORT, max(_SHORT, _longest(place) or 0)]
    profile = {axis: sizes[axis] for axis in sizes if axis in free}
    fixed = "" if "height" in free else "; the size of an image is fixed"
    draft.put("profiles", [profile], f"[min, opt, max]{fixed}")
    draft.put("bench.shapes", [{axis: opt for axis, (_, opt, _) in profile.items()}])
    draft.put("bench.against", [{"runtime": "pytorch"}])
    draft.samples = SampleFile("", samples.images(purpose), samples.LINES if purpose.takes_texts else "")
    draft.put("validate", {}, "the samples are drawn pictures: put images of your users in their place")
    entry = f"{draft.fields['name']}_{tasks.input_word(purpose, images=True)}"
    draft.put("package.triton.ensemble", entry, "the entry that takes image files")


def _sides(place: Path) -> dict[str, list[int]]:
    """Return the ranges of the height and the width of prepared images, by the settings of the image processor."""
    settings = json_files.settings(place / "preprocessor_config.json")
    settings = settings or json_files.settings(place / "processor_config.json").get("image_processor", {})
    size = (settings.get("do_center_crop") and settings.get("crop_size")) or settings.get("size") or _SIDE
    size = size if isinstance(size, dict) else {"height": size, "width": size}
    if "height" in size:
        return {axis: [size[axis]] * 3 for axis in ("height", "width")}
    short = size.get("shortest_edge", _SIDE)
    sides = [max(1, short // 4), short, max(short, size.get("longest_edge") or 0)]
    return {"height": sides, "width": sides}


def _put_texts(draft: Draft, place: Path, purpose: Task) -> None:
    """Set the profiles, the shapes and the samples of a model of texts."""
    stated = _longest(place)
    longest = min(stated or _LONG, _LONG)
    note = f"the model takes {stated} tokens" if stated else f"the model's files name no limit: {_LONG} is a choice"
    usual, short = min(_USUAL, longest), min(_SHORT, longest)
    generates = purpose.generates is not None
    sizes = [1, short, min(_PROMPT, longest)] if generates else [1, usual, longest]
    batch = [1, 1, 4] if generates else [1, 1, 8]
    draft.put("profiles", [{"batch": batch, "sequence": sizes}], f"[min, opt, max]; {note}")
    draft.put("bench.shapes", [{"batch": 1, "sequence": short}], "add the shapes that your clients send")
    draft.put("bench.against", [{"runtime": "pytorch"}])
    if generates:
        draft.put("generate.max_new_tokens", 32, "the most tokens of an answer")
    if checkpoints.has_tokenizer(place):
        draft.samples = SampleFile(".jsonl", samples.texts(purpose))
        draft.put("validate", {}, "the samples are examples: put texts of your users in their place")
        draft.put("package.triton.ensemble", f"{draft.fields['name']}_text", "the entry that takes texts")
        return
    draft.about.append("The model has no tokenizer: `model.tokenizer` may name one; until then clients send token ids.")
    vocabulary = checkpoints.config(place).get("vocab_size")
    if isinstance(vocabulary, int) and vocabulary > 0 and not generates:
        names = tuple(checkpoints.axes(place)) or checkpoints.token_inputs(0)
        draft.samples = SampleFile(".npz", samples.tokens(names, vocabulary, short))
        draft.put("validate", {}, "the samples are random token ids: put those of real texts in their place")


def _longest(place: Path) -> int | None:
    """Return the largest number of tokens of a text: the least that config, tokenizer and modules name."""
    limits: list[Any] = [
        checkpoints.max_sequence(place),
        json_files.settings(place / "tokenizer_config.json").get("model_max_length"),
        json_files.settings(place / "sentence_bert_config.json").get("max_seq_length"),
    ]
    # transformers writes 10 ** 30 where a tokenizer has no limit
    return min((each for each in limits if isinstance(each, int) and 0 < each < 10**6), default=None)
