"""The model.py of a Python model on a GPU: what every Python model does, on the GPU of this instance."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any


class TritonPythonModel:
    """Hands all work to the class of instance.py beside this file, once it is known on which GPU the work is."""

    def initialize(self, args: dict[str, str]) -> None:
        """Load the work; Triton calls this once."""
        if args["model_instance_kind"] == "GPU":
            os.environ["RECIPE_GPU"] = args["model_instance_device_id"]  # session.py reads it
        path = Path(__file__).with_name("instance.py")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} is no Python module")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.instance = module.TritonPythonModel()
        self.instance.initialize(args)

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer each request."""
        return list(self.instance.execute(requests))
