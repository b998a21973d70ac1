"""Pretrained models: a checkpoint as a model of transformers, and what is said of weights that are missing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.kit.checkpoints import unbuildable
from engine.kit.reference import families
from engine.kit.reference.model_loading import HeadOptions, quiet, seeded
from engine.text import reasons

if TYPE_CHECKING:
    from engine.kit.reference.export_ways import Way
    from engine.tasks import Task

_UNLOADED = (
    "do config.json and the weights belong together, and to the installed transformers? "
    "a model whose code is not part of transformers: export it to ONNX, and give the .onnx file as the source"
)
"""The hint for a checkpoint that transformers cannot load."""
_LISTED = 8
"""The largest number of weights that an error names."""


def load(
    checkpoint: Path, task: Task, way: Way, head: HeadOptions, *, refuse: Callable[[Any, str], None]
) -> tuple[Any, frozenset[str]]:
    """Return the model in fp32 and the names of the weights that the checkpoint lacks, from local safetensors only.

    `refuse` gets the config and the name of the transformers class that loads the model, before any weight is read, and
    raises StepError for a model that cannot be built. Raises StepError where the checkpoint cannot be read, or where weights are missing.
    """
    with silent(), seeded():
        model, loading = _from_pretrained(checkpoint, task, way, head.get("num_labels"), refuse)
    _explain(model, loading, task, head)
    return model, frozenset(loading["missing_keys"])


@contextlib.contextmanager
def silent() -> Iterator[None]:
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


def _from_pretrained(
    checkpoint: Path, task: Task, way: Way, num_labels: int | None, refuse: Callable[[Any, str], None]
) -> tuple[Any, dict[str, Any]]:
    """Return the model and the loading info of transformers: missing, unexpected and mismatched weights."""
    import torch
    import transformers

    options: dict[str, object] = {} if num_labels is None else {"num_labels": num_labels}
    try:
        config = transformers.AutoConfig.from_pretrained(
            str(checkpoint), local_files_only=True, trust_remote_code=False, **options
        )
        loader = families.loader(config, task)
        refuse(config, loader)
        config.use_cache = False
        model, loading = getattr(transformers, loader).from_pretrained(
            str(checkpoint),
            config=config,
            attn_implementation=way.attention,
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
