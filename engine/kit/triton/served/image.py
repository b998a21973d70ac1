"""Image preprocessing: turns image files into the input tensors of an image model, as `{name}_preprocess`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any


class Work:
    """IMAGE holds an image file a row. The settings are those of `Preparation` in preparation.py, beside this file."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        path = folder / "preparation.py"
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} is no Python module")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.preparation = module.Preparation(settings)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the model's input tensors, and the texts again. Raises ValueError for a file that is no image."""
        tensors: dict[str, Any] = self.preparation.tensors(given["IMAGE"].reshape(-1).tolist())
        return tensors | ({"checked_texts": given["TEXT"]} if "TEXT" in given else {})
