"""Repository: a Triton model repository of a built model: the model, what stands around it, and what clients call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

from engine import tasks
from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.onnx import graphs, onnx_files
from engine.kit.triton import config as configs
from engine.kit.triton import embedding, fields, generation, images, parts, plain_folder, text, warmups
from engine.kit.triton import model as models
from engine.kit.triton.answers import by_task as answers
from engine.kit.triton.config import Config, Signature
from engine.kit.triton.parts import Files, Part
from engine.kit.triton.serving import Serving
from engine.recipe.model_config import Part as Kind
from engine.reporting import TypedReport
from engine.runtimes.served import Served
from engine.tasks import Answer, AnswerTensor

_VERSION = "1"


@dataclass(frozen=True, kw_only=True)
class PackageReport(TypedReport):
    """A package: what clients call, and the models that Triton serves."""

    name: str
    models: tuple[str, ...]
    bytes: int


def write(
    out: Path, serving: Serving, *, validated: Path, checkpoint: Path, data: Mapping[str, Path] | None = None
) -> PackageReport:
    """Write the folders that Triton serves.

    `data` are the files that warm-ups name; without them no model is warmed up by a file (`kit/triton/warmups.py`).
    What no backend of Triton runs becomes one plain folder (`plain_folder`).
    Raises StepError where names collide, Triton has no such field, or cannot serve the model as it must be.
    """
    out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=out.parent) as folder:
        scratch = Path(folder)
        if _generates(validated, checkpoint):
            made, files = generation.parts(serving, validated, checkpoint, scratch, task=_task(serving, checkpoint))
        else:
            directory = _with_embedding(serving, validated, checkpoint, scratch)
            model = models.served(serving, directory, scratch)
            if model.largest and not serving.largest:  # the profile is one that suits the model
                serving = serving.model_copy(update={"largest": model.largest})
            if model.backend is None:
                return _plain(out, serving, model, directory, checkpoint)
            made = _parts(serving, *models.config(serving, model), checkpoint)
            files = {serving.model_name: Files(directory, model.files)}
        _refuse_collisions(made)
        fields.refuse_unused(serving, _kinds(serving, made))
        for part in made:
            warmups.add(out / part.config.name, part.config, data)
            _write(out, part)
        for name, built in files.items():
            for file in built.names:
                onnx_files.link_file(built.folder / file, out / name / _VERSION / file)
    listed = [part.config.name for part in made]
    print(f"a Triton repository of {', '.join(listed)}")
    return PackageReport(name=listed[-1], models=tuple(listed), bytes=_size(out))


def _parts(serving: Serving, model: Config, signature: Signature, checkpoint: Path) -> list[Part]:
    """Return all models of the repository; the last is what clients call, and says so."""
    task = _task(serving, checkpoint)
    texts = text.load(serving, signature, checkpoint, task) if serving.tokenizer else None
    answer = answers.of(task, signature, checkpoint, texts) if _answers(serving) else None
    first = None
    if texts is not None:
        also = {*answer.takes, *answer.outputs} if answer is not None else ()
        first = text.part(f"{model.name}_tokenizer", model, texts, also=also)
        fields.overridden(first.config, serving, "tokenizer")
    elif serving.tokenizer:
        first = images.part(f"{model.name}_preprocess", model, signature, serving, checkpoint)
        if first is not None:
            fields.overridden(first.config, serving, "preprocess")
    if first is None and answer is None:
        parts.mark(model, task)
        return [Part(model)]
    return _around(serving, model, first, answer, task)


def _around(serving: Serving, model: Config, first: Part | None, answer: Answer | None, task: str) -> list[Part]:
    """Return the model with what stands before and behind it, and the ensemble of them."""
    middle = Part(model, names={} if answer is None else answer.names)
    chain = [middle] if first is None else [first, middle]
    taken = parts.tensors(chain[0].config.input, model)
    outputs = [tensor.name for tensor in model.output]
    if answer is not None and answer.work is not None:
        last = _postprocess(f"{model.name}_postprocess", model, chain, answer, answer.work)
        fields.overridden(last.config, serving, "postprocess")
        chain.append(last)
    if answer is not None:
        outputs = list(answer.outputs)
    entry = parts.ensemble(serving.ensemble, chain, takes=taken, gives=outputs, task=task)
    for name, value in () if answer is None else answer.parameters.items():
        entry.config.parameters[name].string_value = value
    fields.overridden(entry.config, serving, "ensemble")
    return [middle, *(part for part in chain if part is not middle), entry]


def _postprocess(name: str, model: Config, chain: Sequence[Part], answer: Answer, work: str) -> Part:
    """Return the python model that makes answers, of whatever the parts before it take and give."""
    known = {}
    for part in chain:
        for tensor in (*parts.tensors(part.config.input, model), *parts.tensors(part.config.output, model)):
            known[part.names.get(tensor.name, tensor.name)] = tensor
    left_out = [each for each in answer.takes if each not in known]
    if left_out:
        raise StepError(
            f"answers are made of {' and '.join(left_out)}, which package.triton.output leaves out",
            hint="add it there, or say package.triton.postprocess: false",
        )
    takes = [AnswerTensor(each, known[each].type, known[each].dims) for each in answer.takes]
    again = [tensor for tensor in takes if tensor.name in answer.outputs]
    return parts.python(
        name,
        model,
        takes=takes,
        gives=(*again, *answer.gives),
        work=work,
        settings={**answer.settings, "again": [tensor.name for tensor in again]},
        files=answer.files,
    )


def _answers(serving: Serving) -> bool:
    """Tell whether clients are to get answers, not the model's own outputs."""
    return serving.postprocess and serving.tokenizer


def _task(serving: Serving, checkpoint: Path) -> str:
    """Return what the model is for, by the recipe or by itself; an ONNX file that does not say takes tensors."""
    return checkpoints.task(checkpoint, serving.task)


def _generates(validated: Path, checkpoint: Path) -> bool:
    """Tell whether the built model is one of graphs that generate text."""
    return checkpoints.kind(checkpoint) == "transformers" and graphs.generates(validated)


def _with_embedding(serving: Serving, validated: Path, checkpoint: Path, scratch: Path) -> Path:
    """Return the folder of the model, its sentence embedding made in the graph where it is one and clients want it."""
    embeds = _answers(serving) and tasks.find(_task(serving, checkpoint)).embeds
    if not embeds or not (validated / onnx_files.MODEL).is_file():
        return validated
    return embedding.pooled(validated, checkpoint, scratch / "pooled")


def _plain(out: Path, serving: Serving, model: Served, directory: Path, checkpoint: Path) -> PackageReport:
    """Write a plain folder. Returns what `write` does, without models for Triton."""
    signature = Signature(model.inputs, model.outputs)
    texts = text.load(serving, signature, checkpoint, _task(serving, checkpoint)) if serving.tokenizer else None
    tokenizer = None if texts is None else texts.file
    plain_folder.write(out / serving.model_name, directory, model, tokenizer=tokenizer)
    print(model.why_plain)
    return PackageReport(name=serving.model_name, models=(), bytes=_size(out))


def _refuse_collisions(made: Sequence[Part]) -> None:
    names = [part.config.name for part in made]
    if len(set(names)) < len(names):
        raise StepError(
            "two models of the package have the same name", [f"its models: {', '.join(names)}"],
            "choose others with package.triton.name and package.triton.ensemble",
        )  # fmt: skip


def _kinds(serving: Serving, made: Sequence[Part]) -> set[str]:
    """Return the models beside the model itself, as `package.triton.models` calls them."""
    own = {part.config.name.removeprefix(f"{serving.model_name}_") for part in made}
    entry = ["ensemble" if made[-1].config.platform == "ensemble" else "generate"] if len(made) > 1 else []
    return {*own, *entry} & set(get_args(Kind))


def _write(out: Path, part: Part) -> None:
    """Write a model's folder: its configuration, its files, and those of its version."""
    folder: Path = out / part.config.name / _VERSION
    folder.mkdir(parents=True)
    (folder.parent / configs.FILE).write_text(configs.as_text(part.config), "utf-8")
    for place, files in ((folder, part.files), (folder.parent, part.beside)):
        for name, content in files.items():
            (place / name).write_bytes(content)


def _size(out: Path) -> int:
    return sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
