"""Router: a built model that is compiled for several shapes: a model for each shape, and a python model in front."""

from __future__ import annotations

from pathlib import Path

from engine.errors import StepError
from engine.kit.triton import config as configs
from engine.kit.triton import fields, parts, served
from engine.kit.triton import model as models
from engine.kit.triton.config import Signature
from engine.kit.triton.parts import Files, Part
from engine.kit.triton.serving import Serving
from engine.runtimes.backends import Backend
from engine.runtimes.served import Router, Served


def built(serving: Serving, model: Served, directory: Path) -> tuple[list[Part], dict[str, Files], Signature]:
    """Return the models of a built model, the files of each by its name, and the inputs and outputs.

    The last model is the one that is called. `directory` is the folder of the built model. Fields of the recipe for the
    model are fields of each model behind a router. Raises StepError for a field that Triton cannot serve.
    """
    if model.router is None:
        config, signature = models.config(serving, model)
        return [Part(config)], {config.name: _files(model, directory)}, signature
    if fields.says(serving, "model", "model_warmup"):
        raise StepError(
            "package.triton.model_warmup has one shape, and the model is compiled for several",
            [f"models: {', '.join(model.router.models)}"],
            "leave model_warmup out, or keep one profile",
        )
    behind: list[Part] = []
    files = {}
    for end, each in model.router.models.items():
        named = serving.model_copy(update={"model_name": f"{serving.model_name}_{end}"})
        behind.append(Part(models.config(named, each)[0]))
        files[named.model_name] = _files(each, directory)
    signature = Signature(model.inputs, model.outputs)
    return [*behind, _router(serving.model_name, signature, model.router, behind)], files, signature


def _router(name: str, signature: Signature, router: Router, behind: list[Part]) -> Part:
    """Return the python model that clients call; it has as many instances as the models behind it together."""
    config = configs.model_config(name, signature, backend=Backend.PYTHON, batch=0)
    config.instance_group[0].count = sum(group.count for part in behind for group in part.config.instance_group)
    settings = {"routing": router.facts, "models": [part.config.name for part in behind]}
    return Part(config, parts.code(served.ROUTE, settings, {"routing.py": router.code}))


def _files(model: Served, directory: Path) -> Files:
    return Files(model.folder or directory, model.files)
