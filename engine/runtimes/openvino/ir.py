"""IR: models in OpenVINO's intermediate representation, the two files `model.xml` and `model.bin`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.text import reasons

if TYPE_CHECKING:
    import openvino

MODEL, WEIGHTS = "model.xml", "model.bin"
FILES = (MODEL, WEIGHTS)
_NUMBERED = re.compile(r"_\d+$")
_BOUNDARY = frozenset({"Parameter", "Result"})


def read(path: Path) -> openvino.Model:
    """Return the model of an ONNX file or of an IR. Raises StepError for a file that OpenVINO cannot read."""
    import openvino

    try:
        return openvino.Core().read_model(path)
    except RuntimeError as error:
        raise StepError(
            f"OpenVINO cannot read {path.name}",
            reasons.facts(error),
            "use runtime: onnxruntime, which has the other operators of ONNX",
        ) from error


def save(model: openvino.Model, directory: Path) -> None:
    """Write the IR of a model, with weights in the types that they have in memory.

    The same model gives the same bytes: OpenVINO numbers new nodes by a counter of the process, so nodes whose names
    end in a number are numbered by their order in the model instead.
    """
    import openvino

    for number, node in enumerate(model.get_ordered_ops()):
        name = node.get_friendly_name()
        if node.get_type_name() not in _BOUNDARY and _NUMBERED.search(name):
            node.set_friendly_name(f"{_NUMBERED.sub('', name)}_{number}")
    openvino.save_model(model, directory / MODEL, compress_to_fp16=False)
