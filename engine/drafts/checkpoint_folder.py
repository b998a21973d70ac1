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
from engine.kit.images import processors
from engine.kit.reference import image_inputs
from engine.recipe import image_input
from engine.recipe.image_input import Images
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
    sides, longest = _sides(place), _longest(place) or _USUAL
    images = None if image_inputs.sides(place, None) else _put_size(draft, sides[-1])
    free = axes.free(image_inputs.axes(place, purpose.name, images))
    sizes = {"batch": [1, 1, 8], "height": sides, "width": sides, "texts": [1, len(purpose.example), 8]}
    sizes["sequence"] = [1, min(_SHORT, longest), longest]
    profile = {axis: sizes[axis] for axis in free if axis in sizes}
    fixed = "" if "height" in free else "; the size of an image is fixed"
    draft.put("profiles", [profile], f"[min, opt, max]{fixed}")
    draft.put("bench.shapes", [{axis: usual for axis, (_, usual, _) in profile.items()}])
    draft.put("bench.against", [{"runtime": "pytorch"}])
    draft.samples = SampleFile("", samples.images(purpose), samples.LINES if purpose.takes_texts else "")
    draft.put("validate", {}, "the samples are drawn pictures: put images of your users in their place")
    entry = f"{draft.fields['name']}_{tasks.input_word(purpose, images=True)}"
    beside = " and texts" if purpose.takes_texts else ""
    draft.put("package.triton.ensemble", entry, f"the entry that takes image files{beside}")


def _put_size(draft: Draft, side: int) -> Images:
    """Propose a size for a graph of one size, where the image processor gives several: no image is larger than it."""
    size = {"size": {"height": side, "width": side}}
    draft.put("preprocess", size, "the graph takes one size: all images are padded to it, as a processor pads a batch")
    return image_input.of(size, "transformers")


def _sides(place: Path) -> list[int]:
    """Return the range of a side of the prepared images, by the settings of an image processor that gives several."""
    stated = processors.file_of(place).get("size")
    size = stated if isinstance(stated, dict) else {}
    shortest, longest = (size.get(edge) for edge in ("shortest_edge", "longest_edge"))
    shortest = shortest or _SIDE
    return [max(1, shortest // 4), shortest, max(shortest, longest or 2 * shortest)]


def _put_texts(draft: Draft, place: Path, purpose: Task) -> None:
    """Set the profiles, the shapes and the samples of a model of texts."""
    stated = _longest(place)
    longest = min(stated or _LONG, _LONG)
    note = f"the model takes {stated} tokens" if stated else f"the model's files name no limit: {_LONG} is a choice"
    shapes = image_inputs.axes(place, purpose.name, None)
    is_fixed = bool(shapes) and "sequence" not in axes.free(shapes)
    usual, short = min(_USUAL, longest), min(_SHORT, longest)
    generates = purpose.generates is not None
    sizes = [1, short, min(_PROMPT, longest)] if generates else [1, usual, longest]
    batch = [1, 1, 4] if generates else [1, 1, 8]
    note = "each text is padded to the one length that the model takes" if is_fixed else note
    draft.put("profiles", [{"batch": batch, **({} if is_fixed else {"sequence": sizes})}], f"[min, opt, max]; {note}")
    shape = {"batch": 1, **({} if is_fixed else {"sequence": short})}
    draft.put("bench.shapes", [shape], "add the shapes that your clients send")
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
