"""PyTorch models: a transformers checkpoint as a module with named tensors in and out."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import tasks
from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.generation import modules
from engine.kit.inputs.token_rows import Vocabulary
from engine.kit.onnx.onnx_files import Input
from engine.kit.reference import families, timm_models
from engine.kit.reference.quiet import quiet

if TYPE_CHECKING:
    import numpy as np
    import torch

    from engine.recipe.images import Images
    from engine.tasks import Task

_SEED = 20
"""Of a random head: it must be the same one in every step that loads the model."""


def load(
    checkpoint: Path,
    task: str,
    *,
    num_labels: int | None = None,
    random_head: bool = False,
    images: Images | None = None,
) -> torch.nn.Module:
    """Return the model in fp32, eval mode and eager attention, from local safetensors only.

    With `images` it is timm's: see `timm_models.load`; one that generates text is as `generation.modules.whole` makes
    it. Otherwise it takes the int64 tensors `module.input_names`, each
    [batch, sequence], in that order, which `module.wanted` describes, and returns a tuple of `module.output_names`:
    `last_hidden_state` [batch, sequence, hidden], `logits` [batch, labels] or [batch, sequence, labels or vocabulary],
    or `start_logits`, `end_logits` [batch, sequence].

    Raises StepError where the task is not supported, the checkpoint cannot be read, or some of its weights would
    be random: a head only where `random_head` (and `num_labels`, for a classifier) allow it, anything else never.
    """
    import torch

    if images is not None and checkpoints.kind(checkpoint) == "timm":
        return timm_models.load(checkpoint, task, images, num_labels=num_labels, random_head=random_head)
    wanted = _supported(checkpoint, task)
    # A head that is made up must not depend on what ran before, nor disturb what runs after.
    with _quiet(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED)
        model, loading = _from_pretrained(checkpoint, wanted, num_labels)
    _explain(model, loading, task=wanted, num_labels=num_labels, random_head=random_head)
    families.refuse_without_padding(model, wanted)
    if wanted.generates:
        return modules.whole(model)
    return _named_class()(model, input_names(model), wanted.outputs).eval()


def call(module: torch.nn.Module, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the outputs by name; inputs that the model does not take are ignored.

    Raises StepError where an input that it takes is missing.
    """
    import torch

    missing = [name for name in module.input_names if name not in inputs]
    if missing:
        raise StepError(f"the model takes {', '.join(module.input_names)}", [f"missing: {', '.join(missing)}"])
    with torch.inference_mode():
        answers = module(*(torch.from_numpy(inputs[name]) for name in module.input_names))
    return {name: answer.numpy() for name, answer in zip(module.output_names, answers, strict=True)}


def complete(module: torch.nn.Module, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the inputs, and behind an encoder the decoder's own first tokens (`generation.modules.taught`)."""
    import torch

    if modules.DECODER_TOKENS not in module.input_names:
        return dict(inputs)
    ids, mask = (torch.from_numpy(inputs[name]) for name in ("input_ids", "attention_mask"))
    return {**inputs, modules.DECODER_TOKENS: modules.taught(module, ids, mask).numpy()}


def input_names(model: Any) -> tuple[str, ...]:
    """Return which tensors a transformers model takes.

    `token_type_ids` only counts where there is more than one type to tell apart: RoBERTa's embedding has one row.
    """
    taken = inspect.signature(model.forward).parameters
    types = getattr(model.config, "type_vocab_size", 0) or 0
    names = ("input_ids", "attention_mask", *(["token_type_ids"] if types > 1 else []))
    return tuple(name for name in names if name in taken)


def vocabulary(module: torch.nn.Module) -> Vocabulary:
    """Return the numbers that may stand in rows for a loaded model."""
    config = module.model.config
    types = getattr(config, "type_vocab_size", 0) or 1
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


def _supported(checkpoint: Path, name: str) -> Task:
    if checkpoints.kind(checkpoint) == "timm":
        raise StepError(
            "the checkpoint is timm's, and the recipe does not say that it classifies images",
            hint=f"say `task: {tasks.either(lambda task: task.by_timm)}` under `model:`",
        )
    task = tasks.known(name)
    if task is None or task.auto_class is None:
        supported = (each.name for each in tasks.every() if each.auto_class)
        raise StepError(f"{name} is not supported yet for a PyTorch model", [f"supported: {', '.join(supported)}"])
    return task


def _from_pretrained(checkpoint: Path, task: Task, num_labels: int | None) -> tuple[Any, dict[str, object]]:
    import torch
    import transformers

    options: dict[str, object] = {} if num_labels is None else {"num_labels": num_labels}
    try:
        config = transformers.AutoConfig.from_pretrained(
            str(checkpoint), local_files_only=True, trust_remote_code=False, **options
        )
        families.refuse_other(config, task, _class_of(config, task))
        config.use_cache = False
        model, loading = getattr(transformers, _class_of(config, task)).from_pretrained(
            str(checkpoint),
            config=config,
            attn_implementation="eager",
            dtype=torch.float32,
            ignore_mismatched_sizes=True,  # these are judged here, in words that fit a recipe
            local_files_only=True,
            output_loading_info=True,
            trust_remote_code=False,
            use_safetensors=True,
        )
    except StepError:
        raise
    except Exception as error:  # transformers, safetensors and torch each raise their own
        facts = [line for line in str(error).replace(f"{checkpoint}/", "").splitlines() if line.strip()]
        raise StepError(f"the checkpoint cannot be loaded for {task.name}", facts[:8]) from error
    return model, loading


def _class_of(config: Any, task: Task) -> str:
    """Return the class that loads a model for a task; of a family with decoders an encoder alone has its own."""
    named = next(iter(getattr(config, "architectures", None) or ()), "")
    alone = task.encoder_class is not None and named.endswith("EncoderModel")
    return str(task.encoder_class if alone else task.auto_class)


def _explain(model: Any, loading: Mapping[str, Any], *, task: Task, num_labels: int | None, random_head: bool) -> None:
    """Say what the checkpoint holds too much or too little of. Raises StepError where the model would be made up."""
    made_up = sorted(name for name in loading["missing_keys"] if not _is_unused(name, task))
    misfits = {
        name: f"{name}: {list(found)} in the weights, {list(wanted)} by the config"
        for name, found, wanted in sorted(loading["mismatched_keys"])
    }
    body = [name for name in (*made_up, *misfits) if _is_body(model, name)]
    if body:
        raise StepError(
            f"the checkpoint's weights do not make a {type(model).__name__}",
            [*(misfits.get(name, f"missing: {name}") for name in body[:8]), *_more(body)],
            "do config.json and the safetensors belong together?",
        )
    if made_up or misfits:
        _judge_head([*made_up, *misfits], list(misfits.values()), task=task, num_labels=num_labels, allowed=random_head)
    unused = sorted(loading["unexpected_keys"])
    if unused:
        print(f"{len(unused)} weights of the checkpoint are not needed for {task.name}: {unused[0]}, ...")


def _judge_head(head: list[str], misfits: list[str], *, task: Task, num_labels: int | None, allowed: bool) -> None:
    classifies = task.classes is not None
    if allowed and (num_labels is not None or not classifies):
        print(f"the head is random, as the recipe asks: {', '.join(head)}")
        return
    asked = "num_labels and random_head: true" if classifies else "random_head: true"
    raise StepError(
        f"the checkpoint's head does not fit num_labels: {num_labels}"
        if misfits
        else f"the checkpoint has no head for {task.name}",
        [*(misfits or [f"missing: {name}" for name in head[:8]]), *_more(head)],
        f"choose a checkpoint made for {task.name}, or allow a random head with {asked} under model:",
    )


def _is_unused(name: str, task: Task) -> bool:
    """Whether the weight has no influence on the outputs: a pooler stands behind the hidden states."""
    return task.embeds and name.startswith("pooler")


def _is_body(model: Any, name: str) -> bool:
    """Whether the weight belongs to what the heads share; a pooler is part of the head."""
    prefix = f"{model.base_model_prefix}."
    bare = model.base_model is model
    return (bare or name.startswith(prefix)) and not name.removeprefix(prefix).startswith("pooler")


def _more(names: list[str]) -> list[str]:
    return [f"... and {len(names) - 8} more"] if len(names) > 8 else []  # noqa: PLR2004


@cache
def _named_class() -> Any:
    """Return the class of loaded models; made late because its base is torch's."""
    import torch

    class Named(torch.nn.Module):  # type: ignore[misc]
        """A transformers model that takes and returns tensors by position."""

        def __init__(self, model: Any, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> None:
            super().__init__()
            self.model = model
            self.input_names = inputs
            self.output_names = outputs
            self.wanted = {name: Input(name, "int64", ("batch", "sequence")) for name in inputs}

        def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
            answer = self.model(**dict(zip(self.input_names, tensors, strict=True)))
            return tuple(answer[name] for name in self.output_names)

    return Named
