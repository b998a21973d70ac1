"""Opened: a package of one Python model in this process, run by the files that the package carries."""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import UsageError
from engine.kit.triton import config as configs
from engine.kit.triton import parts, served
from engine.runtimes.triton_tensors import TEXT

if TYPE_CHECKING:
    import numpy as np

_HINT = "build it with package.triton.layout: fused"


class OpenedPackage:
    """Texts in, answers out: the same tokenizer, session, padding and CUDA graphs as on a server.

    Calls from several threads run one after the other.
    """

    def __init__(self, package: Path, *, device: int | None = None) -> None:
        """Open the newest version of a package's model; `device` is the number of the GPU, for a package for GPUs.

        Code of the package runs in this process. Raises UsageError where the folder is no package of one Python model,
        and RuntimeError where the GPU of a package for GPUs cannot be used.
        """
        folder = _version(package)
        settings = json.loads((folder / parts.SETTINGS).read_text("utf-8"))
        if device is not None:
            settings["session"]["device"] = device
        self.outputs = tuple(output.name for output in configs.read(folder.parent).output)
        spec = importlib.util.spec_from_file_location("recipe_fused", folder / served.FUSED)
        if spec is None or spec.loader is None:
            raise UsageError(f"{folder / served.FUSED} is no Python module", hint=_HINT)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self._work = module.Work(folder, settings)
        self._lock = threading.Lock()

    def __call__(self, texts: Sequence[str | Sequence[str]]) -> dict[str, np.ndarray]:
        """Return the answers to texts, or to pairs of texts, by the names of the outputs; a row for each.

        Raises ValueError for texts that the server would refuse, such as a text that is too long.
        """
        import numpy as np

        rows = [[each] if isinstance(each, str) else list(each) for each in texts]
        if len({len(row) for row in rows}) != 1:
            raise ValueError("a call has one row or more, and each row as many texts as the others")
        array = np.array([[text.encode() for text in row] for row in rows], dtype=object)
        with self._lock:
            [(_, result, _)] = self._work.together([(lambda: {TEXT: array}, list(self.outputs), lambda: False)])
            answers = result()
        decoded = np.vectorize(lambda text: text.decode("utf-8"), otypes=[object])
        return {name: decoded(answer) if answer.dtype == object else answer for name, answer in answers.items()}


def _version(package: Path) -> Path:
    """Return the folder of the newest version of the one model of a package."""
    folders = [path.parent for path in package.glob(f"*/*/{served.FUSED}") if path.parent.name.isdecimal()]
    if len({folder.parent for folder in folders}) != 1:
        names = ", ".join(sorted(path.parent.name for path in package.glob(f"*/{configs.FILE}"))) or "none"
        raise UsageError(f"{package} is no package of one Python model", [f"its models: {names}"], _HINT)
    return max(folders, key=lambda folder: int(folder.name))
