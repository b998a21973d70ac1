"""The project's name on PyPI, its installed version, its extras, and the commands that install them."""

from __future__ import annotations

from functools import cache

NAME = "recipe-build"
"""The name of this project on PyPI, where `recipe` is another project."""
VERSION_FACT = "recipe.version"
"""The fact under which records have the version of this program that made them."""
EXTRAS = {
    "onnx": ("numpy", "onnx", "onnxruntime", "pillow", "sympy", "tokenizers", "tritonclient", "protobuf"),
    "cpu": ("huggingface-hub", "onnxscript", "safetensors", "sentencepiece", "torch", "transformers"),
    "timm": ("timm", "torchvision"),
    "openvino": ("nncf", "openvino"),
    "rtx": ("tensorrt_rtx",),
    "tensorrt": ("tensorrt",),
    "completion": ("argcomplete",),
    "tune": ("optuna",),
    "remote": ("cryptography", "httpx", "obstore", "zstandard"),
}
"""Extra of this project -> the distributions that it installs; `cpu` also installs those of `onnx`."""
_ON_GPU = ("onnxruntime-gpu",)
"""Distributions that take the place of one for the CPU."""
_BESIDE = {"cuda-bindings": "tensorrt"}
"""Distribution -> the extra that installs it beside those of EXTRAS."""
_MODULES = {"protobuf": "google", "pillow": "PIL"}
"""Distribution -> the name to import, where the two differ by more than dashes."""


@cache
def version() -> str:
    """Return the installed version of this program; "" where the program runs from its source tree."""
    from importlib.metadata import PackageNotFoundError, version  # the import takes long

    try:
        return version(NAME)
    except PackageNotFoundError:
        return ""


def running() -> str:
    """Return this program with its version, in words."""
    return f"recipe {version()}" if version() else "recipe, run from its source tree"


def earlier(version: str) -> str:
    """Return the program that wrote a lock or a record, in words; old files do not state its version."""
    return f"recipe {version}" if version else "an older version of recipe"


def install(extra: str) -> str:
    """Return the command that installs an extra of this project, for the hints of errors."""
    return f"pip install '{NAME}[{extra}]'"


def extra_with(distribution: str) -> str | None:
    """Return the extra that installs a distribution; None for a distribution that no extra installs."""
    return next((extra for extra, names in EXTRAS.items() if distribution in names), None)


def command_for(distribution: str) -> str:
    """Return the command that installs a distribution with the extra of this project that it belongs to.

    onnxruntime and onnxruntime-gpu install the same module, so one goes before the other comes.
    """
    name = distribution.replace("_", "-")
    if name in _ON_GPU:
        return f"pip uninstall -y onnxruntime && {install('gpu')}"
    extra = next((extra for extra, names in EXTRAS.items() if {name, distribution} & {*names}), _BESIDE.get(name, ""))
    return install(extra) if extra else f"pip install {name}"


def module_of(distribution: str) -> str:
    """Return the name by which Python code imports a distribution."""
    return _MODULES.get(distribution, distribution.replace("-", "_"))


def of_module(module: str) -> str:
    """Return the name of the distribution of a module that an extra of this project installs."""
    every = [name for names in EXTRAS.values() for name in names]
    return next((name for name in every if module_of(name) == module), module)
