"""Repository: writes a Triton model repository with the built model, the models around it, and the ensemble of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

from engine import tasks
from engine.errors import StepError
from engine.kit.accuracy import batching
from engine.kit.accuracy.batching import RowBatching
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.onnx import graphs, onnx_files
from engine.kit.triton import config as configs
from engine.kit.triton import (
    embedding,
    fields,
    fused,
    generation,
    images,
    loading,
    parts,
    served,
    splitter,
    text,
    warmups,
)
from engine.kit.triton import model as models
from engine.kit.triton.answers import by_task as answers
from engine.kit.triton.config import Config, Signature
from engine.kit.triton.parts import Part
from engine.kit.triton.serving import FUSED, Serving
from engine.recipe.licenses import Licensed
from engine.recipe.model_config import MODEL_VERSION, PartName
from engine.reporting import TypedReport
from engine.runtimes import axes
from engine.runtimes.backends import BY_POSITION, Backend
from engine.runtimes.served import Served
from engine.tasks import Answer, AnswerTensor

_VERSION = str(MODEL_VERSION)


@dataclass(frozen=True, kw_only=True)
class PackageReport(TypedReport):
    """The report of a package: `name` is the model that clients call, `models` are all models that Triton serves."""

    name: str
    models: tuple[str, ...]
    bytes: int
    licenses: tuple[Licensed, ...] = ()
    """What is known about the licences of the model and the tokenizer."""
    not_verified: str | None = None
    """Why nobody knows whether the recipe's Triton image loads the model; None where that is known."""


def write(
    out: Path, serving: Serving, *, validated: Path, checkpoint: Path, data: Mapping[str, Path] | None = None
) -> PackageReport:
    """Write the model folders of a Triton repository into `out`.

    `data` are the files that warm-ups read; where `data` is None, warm-ups that read files are left out
    (`kit/triton/warmups.py`). A model that no backend of Triton runs becomes one plain folder.
    Raises StepError where two models have one name, where Triton does not know a field of the recipe, or where Triton
    cannot serve the model.
    """
    out.mkdir(parents=True, exist_ok=True)
    joins = batching.read(validated)
    with TemporaryDirectory(dir=out.parent) as folder:
        scratch = Path(folder)
        if checkpoints.kind(checkpoint) == "transformers" and graphs.generates(validated):
            listed, files = generation.parts(
                serving, validated, checkpoint, scratch, task=_task(serving, checkpoint), batching=joins
            )
        else:
            directory = _with_embedding(serving, validated, checkpoint, scratch)
            model = splitter.unjoined(models.served_model(serving, directory, scratch), joins)
            # Where the recipe has no profiles, the engine has.
            largest = axes.by_name(serving.largest, axes.shapes(model.inputs)) or model.largest
            lengths = axes.by_name(serving.lengths, axes.shapes(model.inputs))
            serving = serving.model_copy(update={"largest": largest, "lengths": lengths})
            if model.backend is None:
                return _write_plain(out, serving, model, directory, checkpoint)
            (*behind, called), files, signature = models.built(serving, model, directory)
            if joins is RowBatching.TOGETHER and images.differ(serving, signature):
                joins = RowBatching.EQUAL_LENGTHS  # the images of one request would be padded to the largest
            listed = splitter.in_front([*behind, *_parts(serving, called, signature, checkpoint)], joins, serving)
            parts.by_position(listed, signature)
            if serving.layout == FUSED:
                one, whose = fused.part(serving, listed, model, files[called.config.name], checkpoint)
                listed, files = [one], {one.config.name: whose}
        _refuse_collisions(listed)
        fields.refuse_unused(serving, _kinds(serving, listed))
        loading.refuse([part.config for part in listed])
        for part in listed:
            warmups.add(out / part.config.name, part.config, data)
            _write(out, part)
        for name, built in files.items():
            for file in built.names:
                onnx_files.link_file(built.folder / file, out / name / _VERSION / file)
    (out / served.PROBE).write_bytes(served.code(served.PROBE))
    names = [part.config.name for part in listed]
    print(f"a Triton repository of {', '.join(names)}")
    return PackageReport(name=names[-1], models=tuple(names), bytes=onnx_files.folder_size(out))


def tokenizer_of(out: Path, model_name: str) -> Path:
    """Return the path of tokenizer.json in the repository `out`, for a model that the repository serves with texts."""
    name = _tokenizer_name(model_name)
    places = (out / name / _VERSION, *out.glob(f"*/{_VERSION}/{name}"))  # the second in a package of one Python model
    return next((place / text.TOKENIZER for place in places if place.is_dir()), places[0])


def _tokenizer_name(model_name: str) -> str:
    return f"{model_name}_tokenizer"


def _parts(serving: Serving, middle: Part, signature: Signature, checkpoint: Path) -> list[Part]:
    """Return the built model and the models around it; the last model is marked as the one that clients call."""
    model = middle.config
    task = _task(serving, checkpoint)
    texts = text.load(serving, signature, checkpoint, task) if serving.tokenizer else None
    answer = answers.of_package(serving, signature, checkpoint, task, texts) if _answers(serving) else None
    also = {*answer.takes, *answer.outputs} if answer is not None else set()
    first: list[Part] = []
    if serving.tokenizer:
        of_files = images.part(
            f"{model.name}_preprocess", model, signature, serving, checkpoint,
            also=also, texts=[] if texts is None else [texts.row],
        )  # fmt: skip
        if of_files is not None:
            fields.overridden(of_files.config, serving, "preprocess")
            first.append(of_files)
        elif images.SIZES in also:  # clients send tensors, whose size says nothing about a file's
            answer = None
    if texts is not None:
        of_texts = text.part(_tokenizer_name(model.name), model, texts, also=also)
        fields.overridden(of_texts.config, serving, "tokenizer")
        first.append(replace(of_texts, names={texts.row.name: images.CHECKED_TEXTS}) if first else of_texts)
    if not first and answer is None and Backend.of(platform=model.platform, backend="") not in BY_POSITION:
        parts.mark(model, task)
        return [middle]
    return _around(serving, middle, first, answer, task)


def _around(serving: Serving, built: Part, first: Sequence[Part], answer: Answer | None, task: str) -> list[Part]:
    """Return the model itself, the python models that run before and after it, and the ensemble of all of them.

    The ensemble takes what the models of `first` take, and the inputs of the model that none of them gives.
    """
    model = built.config
    middle = replace(built, names={} if answer is None else answer.names)
    chain = [*first, middle]
    given = {tensor.name for part in first for tensor in part.config.output}
    taken = [
        tensor
        for part in chain
        for tensor in parts.tensors(part.config.input, model)
        if part.names.get(tensor.name, tensor.name) not in given
    ]
    outputs = [tensor.name for tensor in model.output]
    if answer is not None and answer.work is not None:
        last = _postprocess(f"{model.name}_postprocess", model, chain, answer, answer.work)
        fields.overridden(last.config, serving, "postprocess")
        chain.append(last)
    if answer is not None:
        outputs = list(answer.outputs)
    entry = parts.ensemble(serving.ensemble, chain, takes=taken, gives=outputs, task=task)
    if answer is not None:
        for name, value in answer.parameters.items():
            entry.config.parameters[name].string_value = value
    fields.overridden(entry.config, serving, "ensemble")
    text.refuse_visible_padding(serving, entry.config)
    return [middle, *(part for part in chain if part is not middle), entry]


def _postprocess(name: str, model: Config, chain: Sequence[Part], answer: Answer, work: str) -> Part:
    """Return the postprocessing: a python model that computes the answers.

    The inputs of the postprocessing are inputs or outputs of the models in `chain`. Raises StepError where the recipe
    leaves out an output of the model that the answers are computed from.
    """
    available = {}
    for part in chain:
        for tensor in (*parts.tensors(part.config.input, model), *parts.tensors(part.config.output, model)):
            available[part.names.get(tensor.name, tensor.name)] = tensor
    left_out = [each for each in answer.takes if each not in available]
    if left_out:
        raise StepError(
            f"answers are made of {' and '.join(left_out)}, which package.triton.output leaves out",
            hint=f"add {' and '.join(left_out)} to package.triton.output, or set package.triton.postprocess: false",
        )
    takes = [AnswerTensor(each, available[each].type, available[each].dims) for each in answer.takes]
    again = [tensor for tensor in takes if tensor.name in answer.outputs]
    return parts.python(
        name,
        model,
        takes=takes,
        gives=(*again, *answer.gives),
        work=work,
        settings={**answer.settings, "again": [tensor.name for tensor in again]},
        files=answer.files,
        needs=answer.needs,
    )


def _answers(serving: Serving) -> bool:
    """Tell whether clients get answers to the model's task; otherwise clients get the model's own outputs."""
    return serving.postprocess and serving.tokenizer


def _task(serving: Serving, checkpoint: Path) -> str:
    """Return the task of the recipe, else of the checkpoint; an ONNX file without a task takes and gives tensors."""
    return checkpoints.task(checkpoint, serving.task)


def _with_embedding(serving: Serving, validated: Path, checkpoint: Path, scratch: Path) -> Path:
    """Return the folder with the model that Triton is to serve.

    For a task whose answers are sentence embeddings, `embedding.pooled` adds to the graph the nodes that compute the
    embedding, where the checkpoint has a pooling that `embedding` supports. The hidden states remain an output of the
    model where the recipe lists them under `package.triton.output`.
    """
    embeds = _answers(serving) and tasks.find(_task(serving, checkpoint)).embeds
    if not embeds or not (validated / onnx_files.MODEL).is_file():
        return validated
    return embedding.pooled(
        validated, checkpoint, scratch / "pooled", with_states=fields.lists_output(serving, embedding.STATES)
    )


def _write_plain(out: Path, serving: Serving, model: Served, directory: Path, checkpoint: Path) -> PackageReport:
    """Write a plain folder for programs without a server: the model's files, its tokenizer, and requirements.txt."""
    import numpy as np

    folder = out / serving.model_name
    onnx_files.link(directory, folder)
    needs = [*model.needs, f"numpy>={np.__version__.split('.', maxsplit=1)[0]}"]
    signature = Signature(model.inputs, model.outputs)
    texts = text.load(serving, signature, checkpoint, _task(serving, checkpoint)) if serving.tokenizer else None
    if texts is not None:
        import tokenizers

        (folder / text.TOKENIZER).write_text(texts.file, "utf-8")
        needs.append(f"tokenizers=={tokenizers.__version__}")
        if texts.tokenizer.prompt:
            needs.insert(0, f"# In front of each text stands {texts.tokenizer.prompt!r}.")
    lines = [f"# What runs {model.files[0]}; {model.why_plain}.", *needs]
    (folder / parts.REQUIREMENTS).write_text("\n".join(lines) + "\n", "utf-8")
    print(model.why_plain)
    return PackageReport(name=serving.model_name, models=(), bytes=onnx_files.folder_size(out))


def _refuse_collisions(listed: Sequence[Part]) -> None:
    names = [part.config.name for part in listed]
    if len(set(names)) < len(names):
        raise StepError(
            "two models of the package have the same name", [f"its models: {', '.join(names)}"],
            "choose others with package.triton.name and package.triton.ensemble",
        )  # fmt: skip


def _kinds(serving: Serving, listed: Sequence[Part]) -> set[str]:
    """Return the names under `package.triton.models` of the package's models, without the model itself."""
    kinds = {part.config.name.removeprefix(f"{serving.model_name}_") for part in listed}
    if len(listed) > 1:
        kinds.add("ensemble" if listed[-1].config.platform == "ensemble" else "generate")
    return kinds & set(get_args(PartName))


def _write(out: Path, part: Part) -> None:
    """Write a model's folder: the configuration, the files, and the folder of the model's version."""
    folder: Path = out / part.config.name / _VERSION
    folder.mkdir(parents=True)
    (folder.parent / configs.FILE).write_text(configs.as_text(part.config), "utf-8")
    for place, files in ((folder, part.files), (folder.parent, part.beside)):
        for name, content in files.items():
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_bytes(content)
