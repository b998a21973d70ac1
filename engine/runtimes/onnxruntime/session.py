"""Sessions of ONNX Runtime: they run on the given provider, with the options in the model's `session.json`."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.kit.onnx import onnx_files, qdq_operators
from engine.kit.onnx.onnx_files import MODEL
from engine.machine import shared_libraries
from engine.runtimes.onnxruntime import providers as ort_providers
from engine.runtimes.onnxruntime import session_options
from engine.runtimes.onnxruntime.providers import ON_CPU, SessionProvider
from engine.runtimes.onnxruntime.session_options import LEVELS
from engine.runtimes.runner import refuse_missing
from engine.text import reasons

if TYPE_CHECKING:
    import numpy as np
    import onnx
    import onnxruntime

_NO_PREPACKING = ("session.disable_prepacking", "1")
_PREPACKED = 256 << 20
"""The number of bytes of weights that a build may hold in memory rearranged, for faster products."""
_HINT = "give inputs of the shapes and numbers that the model is made for: samples, or narrower profiles"
"""The hint for a model that fails on its inputs."""
_UNLOADABLE = "does onnx.checker accept the file? export the model again, or install a newer onnxruntime"
"""The hint for a file that ONNX Runtime refuses on a CPU."""
_SOURCE = re.compile(r"/onnxruntime_src/\S+ .*?\) (?=\S)")
"""The place in ONNX Runtime's own source files, and the signature of the function, in front of a message."""
_SILENT = 4
"""ONNX Runtime's log level "fatal".

ONNX Runtime's messages of lower levels are not printed, as exceptions hold the same text.
"""


_UP_TO_BASIC = ("disabled", "basic")
"""The optimization levels at which ONNX Runtime fuses no Q/DQ operators into others."""
_BLOCKED = ("NchwcTransformer",)
"""The optimizer that pads the channels of convolutions to blocks of 8 or 16, so that shapes no longer tell the work."""


def session(
    directory: Path,
    *,
    threads: int = 0,
    level: str | None = None,
    provider: SessionProvider = ON_CPU,
    frugal: bool = False,
    prepack: bool = True,
    profile: Path | None = None,
) -> onnxruntime.InferenceSession:
    """Open `directory/model.onnx` on a provider, with the options of its `session.json`.

    `threads` is the number of threads inside an operator; 0 lets ONNX Runtime choose. `level` (`disabled`, `basic`,
    `extended`, `all`) takes the place of the level that `level_of` returns. With `frugal`, few tensors are in memory at
    once: the nodes run in the order of the file, as far as ONNX Runtime lets its caller choose the order, and ONNX
    Runtime gives memory back as soon as a tensor is used up. Without `prepack`, memory is given back, too, and ONNX
    Runtime reads weights of a separate file where they are mapped, instead of rearranging them in memory for faster
    products.
    With `profile`, the session writes a profile of its runs into a file whose name begins with `profile`; without
    `prepack`, the profile names the shapes of weights. Raises StepError where ONNX Runtime refuses the model, or would
    run it on another provider.
    """
    import onnxruntime

    settings = _settings(level or level_of(directory, on_gpu=provider.on_gpu), threads)
    settings.inter_op_num_threads = 1
    if not prepack:
        settings.add_session_config_entry(*_NO_PREPACKING)
    if frugal or not prepack:
        settings.enable_cpu_mem_arena = False
    if frugal:
        settings.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
    if profile is not None:
        settings.enable_profiling = True
        settings.profile_file_prefix = str(profile)
    ort_providers.expect_available(provider)
    if provider.on_gpu:
        settings.add_session_config_entry(ort_providers.RECORD, "1")
        onnxruntime.preload_dlls()  # loads CUDA libraries that pip installed, and prints which are missing
    refused = _preloaded(ort_providers.TENSORRT_LIBRARIES.names) if provider.name == ort_providers.TENSORRT else []
    disabled = (*session_options.read(directory).disabled, *(() if profile is None else _BLOCKED))
    try:
        opened = _open(directory / MODEL, settings, provider, disabled)
        ort_providers.expect_used(opened, provider)
    except StepError as error:
        raise StepError(error.what, [*error.facts, *refused], error.hint) from error
    return opened


def _preloaded(names: Sequence[str]) -> list[str]:
    """Load libraries, as the system's loader does not find those of pip; return why some could not be loaded."""
    refused: list[str] = []
    for name in names:
        try:
            shared_libraries.load(name)
        except OSError as error:
            refused.append(str(error))
    return refused


def level_of(directory: Path, *, on_gpu: bool) -> str:
    """Return the optimization level of a model: that of `session.json`, else `all`; at most `basic` for fp8 on a CPU.

    Above `basic`, ONNX Runtime makes a MatMulIntegerToFloat of a product in fp8 on a CPU, and the operator has no fp8:
    1.31 refuses the graph, and 1.32 computes other numbers.
    """
    level = session_options.read(directory).level
    if on_gpu or level in _UP_TO_BASIC or not (directory / MODEL).is_file():
        return level
    return "basic" if "fp8" in qdq_operators.quantized_types(onnx_files.load_graph(directory)) else level


def unoptimized(directory: Path) -> onnxruntime.InferenceSession:
    """Open `directory/model.onnx` on one CPU thread and without optimizations, so that equal inputs give equal bits.

    The session is frugal, because in ONNX Runtime's own order nodes that read only weights run first, and nodes that
    give outputs run last: all of their tensors would be in memory at once. The weights of a large model stay mapped.
    Raises StepError where ONNX Runtime refuses the model.
    """
    return session(directory, threads=1, level="disabled", frugal=True, prepack=prepacks(directory))


def refuse_unloadable(model: Path | bytes) -> None:
    """Open an ONNX file, or the bytes of one, on the CPU. Raises StepError where ONNX Runtime refuses it."""
    _open(model, _settings("disabled", threads=1), ON_CPU)


def unoptimized_graph(model: onnx.ModelProto, scratch: Path) -> onnxruntime.InferenceSession:
    """Open a model that is in memory, on one CPU thread and without optimizations.

    A folder in `scratch` holds the model's files while ONNX Runtime opens the model. The mapped weights of a large
    model are not copied.
    """
    with TemporaryDirectory(dir=scratch) as folder:
        onnx_files.save_linked(model, Path(folder))
        return unoptimized(Path(folder))


def optimize(source: Path, out: Path, *, level: str, disabled: tuple[str, ...] = ()) -> None:
    """Let ONNX Runtime optimize the graph `source/model.onnx`, and write the optimized graph to the folder `out`.

    Only the levels `basic` and `extended` give the same model on every machine, because `all` chooses memory layouts
    for the CPU of this machine. Raises StepError where ONNX Runtime refuses the model.
    """
    out.mkdir(parents=True, exist_ok=True)
    settings = _settings(level, threads=1)  # folded constants then have the same bits on any number of cores
    settings.optimized_model_filepath = str(out / MODEL)
    settings.add_session_config_entry(*_NO_PREPACKING)  # the session runs nothing
    graph = onnx_files.load_graph(source)
    if onnx_files.data_files(graph) or onnx_files.weight_bytes(graph) > onnx_files.INLINE_LIMIT:
        settings.add_session_config_entry("session.optimized_model_external_initializers_file_name", onnx_files.DATA)
        settings.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", "1024")
    _open(source / MODEL, settings, ON_CPU, disabled)


def run(
    session: onnxruntime.InferenceSession, inputs: Mapping[str, np.ndarray], options: Any = None
) -> dict[str, np.ndarray]:
    """Run a session and return every output by name; `options` are ONNX Runtime's `RunOptions`.

    The function `feed` chooses the model's inputs among `inputs` and casts the chosen inputs. Raises StepError where an
    input of the model is missing, or where ONNX Runtime cannot run the model on these inputs.
    """
    fed = feed(session, inputs)
    names = [value.name for value in session.get_outputs()]
    with _explained(fed):
        return dict(zip(names, session.run(names, fed, options), strict=True))


def outputs(
    session: onnxruntime.InferenceSession, inputs: Mapping[str, np.ndarray]
) -> Iterator[tuple[str, np.ndarray]]:
    """Run a session, and yield the name and the numbers of each output; only one output is copied out at a time.

    Raises StepError as `run` does. The model must not take texts.
    """
    import onnxruntime

    fed = feed(session, inputs)
    names = [value.name for value in session.get_outputs()]
    with _explained(fed):
        values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in fed.items()}
        results = session.run_with_ort_values(names, values)
    for name in names:
        yield name, results.pop(0).numpy()


@contextlib.contextmanager
def _explained(fed: Mapping[str, np.ndarray]) -> Iterator[None]:
    """Raise StepError in place of an error of ONNX Runtime, with the shapes of the inputs."""
    try:
        yield
    except Exception as error:  # as in `_open`: ONNX Runtime raises a class per status code
        shapes = [f"{name}: {array.dtype}{list(array.shape)}" for name, array in fed.items()]
        raise StepError(
            "ONNX Runtime cannot run the model on these inputs", [*reasons.facts(error), *shapes], _HINT
        ) from error


def feed(session: onnxruntime.InferenceSession, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the inputs that the model has, cast to the width of the model's own integers or floats.

    Raises StepError where `inputs` lacks an input of the model.
    """
    model_inputs = session.get_inputs()
    refuse_missing((value.name for value in model_inputs), inputs)
    return {value.name: _cast(inputs[value.name], value.type) for value in model_inputs}


def prepacks(directory: Path) -> bool:
    """Whether ONNX Runtime may rearrange the weights of a model in memory: where they are few enough."""
    if not (directory / MODEL).is_file():
        return True
    return onnx_files.size(directory, onnx_files.load_graph(directory)) <= _PREPACKED


def _settings(level: str, threads: int) -> onnxruntime.SessionOptions:
    """Return the session options that every session has; `level` is an optimization level, a key of `LEVELS`."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = _SILENT
    settings.intra_op_num_threads = threads
    settings.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, LEVELS[level])
    return settings


def _open(
    model: Path | bytes, settings: onnxruntime.SessionOptions, provider: SessionProvider, disabled: Sequence[str] = ()
) -> onnxruntime.InferenceSession:
    """Open a file, or the bytes of one; the folder of the file is left out of errors, as it tells a user nothing."""
    import onnxruntime

    source, hidden = (str(model), f"{model.parent}/") if isinstance(model, Path) else (model, "")
    try:
        return onnxruntime.InferenceSession(
            source,
            settings,
            providers=provider.listed(),
            disabled_optimizers=list(disabled),
            enable_fallback=0,  # else ONNX Runtime tries again on a CPU when the GPU fails, now or during a run
        )
    except Exception as error:  # ONNX Runtime raises a class per status code, all derived from Exception
        facts = [_SOURCE.sub("", fact) for fact in reasons.facts(error, without=hidden)]
        if provider.on_gpu:
            what = f"ONNX Runtime cannot open the model on {provider.name}"
            raise StepError(what, facts, ort_providers.HINT) from error
        raise StepError("ONNX Runtime cannot open the model", facts, _UNLOADABLE) from error


def _cast(array: np.ndarray, onnx_type: str) -> np.ndarray:
    """Cast an array to an ONNX type of the same kind (int64 -> int32, float32 -> float16).

    ONNX Runtime refuses an array of another kind than its input, for example floats in place of integers.

    `onnx_type` is the type as ONNX Runtime writes it: "tensor(float16)".
    """
    import numpy as np

    names = {"tensor(float)": "float32", "tensor(double)": "float64"}
    dtype = names.get(onnx_type, onnx_type.removeprefix("tensor(").removesuffix(")"))
    if dtype not in {"float16", "float32", "float64", "int8", "int16", "int32", "int64"} or array.dtype == dtype:
        return array
    return array.astype(dtype) if np.can_cast(array.dtype, dtype, "same_kind") else array
