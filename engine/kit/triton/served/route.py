"""Tensors of any size in, the answer of the model whose shape computes them fastest out: the work of the router."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any


class Work:
    """Pads each request to a shape for which a model of the package is compiled, and calls this model in the server.

    routing.py beside this file chooses the shape. Settings: `routing`, the facts of the shapes, and `models`, the name
    of the model for each fixed shape and, where there is one, of the model for free shapes, which is the last.
    """

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self.routing = _module(folder / "routing.py").Routing(settings["routing"])
        self.models = settings["models"]
        # All models of a package have one version: an older one, still loaded, must not call the models of a newer.
        self.version = int(folder.name)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the outputs without what padding added. Raises ValueError for shapes that no model takes."""
        sizes = self.routing.sizes({name: array.shape for name, array in given.items()})
        index = self.routing.choose(sizes)
        if index >= 0:
            given = self.routing.padded(given, index)
        outputs = self.called(self.models[index], given)
        return outputs if index < 0 else self.routing.cropped(outputs, sizes)

    def called(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """Return the outputs of a model of this server. Raises RuntimeError with the message of a failed call."""
        import triton_python_backend_utils as triton  # type: ignore[import-not-found]  # only inside the server

        request = triton.InferenceRequest(
            model_name=name,
            model_version=self.version,
            requested_output_names=list(self.routing.outputs),
            inputs=[triton.Tensor(each, array) for each, array in given.items()],
        )
        response = request.exec()
        if response.has_error():
            raise RuntimeError(f"{name}: {response.error().message()}")
        return {tensor.name(): tensor.as_numpy() for tensor in response.output_tensors()}


def _module(path: Path) -> Any:
    """Return the module in a file beside this one."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
