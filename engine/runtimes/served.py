"""Served: the properties of a built model that the writer of a package needs; the model's runtime returns them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.runtimes.backends import Backend

if TYPE_CHECKING:
    from engine.kit.onnx.onnx_files import Input

Shapes = Mapping[str, Sequence[int]]
"""The shape of each input by the input's name."""


class Graph(NamedTuple):
    """A CUDA graph of a TensorRT engine: the opt shape and the min shape of every input in one profile."""

    usual: Shapes
    least: Shapes


class Router(NamedTuple):
    """The Python model in front of several models, each of which is the built model for other shapes of its inputs."""

    code: bytes
    """The content of the module `routing.py`, whose class `Routing` chooses a model."""
    facts: Mapping[str, Any]
    """The argument of `Routing`: JSON values."""
    models: Mapping[str, Served]
    """The models by the ends of their names, in the order of their numbers in `Routing`."""


class InPython(NamedTuple):
    """How a Python model runs the built model in its own process, in place of a backend of Triton."""

    code: bytes
    """The content of the module `session.py`, whose class `ModelSession` runs the model."""
    settings: Mapping[str, Any]
    """The settings of `ModelSession` besides `threads`: JSON values."""
    needs: tuple[str, ...]
    """The Python packages that `ModelSession` needs."""


class Served(NamedTuple):
    """A built model, ready to be put into a package.

    `inputs` and `outputs` are the model's tensors by name; both may be empty where the graph in `model.onnx` describes
    the tensors. `files` are the names of the model's files that a server needs.
    """

    backend: Backend | None
    """Triton's backend for the model; None where Triton has no backend for it, and the package is a plain folder."""
    inputs: Mapping[str, Input]
    outputs: Mapping[str, Input]
    files: tuple[str, ...]
    folder: Path | None = None
    """The folder of the files; None for the folder of the built model."""
    optional: Mapping[str, Input] = {}
    """The inputs that have a default value, which a request may leave out."""
    largest: Mapping[str, int] = {}
    """The largest size of each axis in the model's own profiles; empty where the model has no profiles."""
    joined: bool = True
    """Whether the backend takes requests that Triton joins into batches of any size."""
    parameters: Mapping[str, str] = {}
    """Parameters of the backend in the model's configuration."""
    on_gpu: bool = False
    level: str = "all"
    """ONNX Runtime's level of graph optimization."""
    profiles: int | None = None
    """The number of profiles of a TensorRT engine; None for a model that is no engine."""
    shape_tensors: Sequence[str] = ()
    """The names of the inputs of a TensorRT engine whose values are sizes of other tensors."""
    cuda_graphs: Sequence[Graph] | None = None
    """The CUDA graphs that Triton captures, one for each profile; None for no CUDA graphs."""
    accelerator: Callable[[str], tuple[str, Mapping[str, str]]] | None = None
    """A function from the model's name in the repository to the accelerator of Triton's ONNX Runtime backend and the
    accelerator's parameters; None for no accelerator."""
    in_python: InPython | None = None
    """How a Python model runs the built model itself; None for a model that only a backend of Triton runs."""
    router: Router | None = None
    """The models behind a built model that is compiled for several shapes; None for a model of one file."""
    why_plain: str = ""
    """The reason, for the log, why no backend of Triton runs the model; empty where a backend runs the model."""
    needs: tuple[str, ...] = ()
    """The packages that run the model where no backend of Triton runs the model, written as in requirements.txt."""


def plain(directory: Path, why: str) -> Served:
    """Return a model that no backend of Triton runs: all files of `directory` go into a plain folder."""
    from engine import digest  # it loads xxhash, which a refused recipe has no use for

    return Served(None, {}, {}, tuple(digest.walk(directory)), why_plain=why)
