"""The environment variables that a worker sees."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

_NAMES = frozenset({
    # Where programs and shared libraries are. Keys have their versions: `tools.*`, and facts such as `cuda.runtime`.
    "PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
    # Where this user's files are. What libraries keep in caches is what they would fetch or compute anew.
    "HOME", "TMPDIR", "XDG_CACHE_HOME", "CUDA_CACHE_PATH",
    # Which hub is asked, in whose name, and where its files are. The row of the source has the commit.
    "HF_ENDPOINT", "HF_TOKEN", "HF_TOKEN_PATH", "HUGGING_FACE_HUB_TOKEN",
    "HF_HOME", "HF_HUB_CACHE", "HF_XET_CACHE", "HF_HUB_OFFLINE", "HF_HUB_DISABLE_XET", "HF_HUB_DOWNLOAD_TIMEOUT",
    # The way to the hub. What comes by another way has the same commit.
    "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
    "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    # Which GPUs CUDA shows, and their order. The facts `device.*` describe the GPU that CUDA shows.
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
    # Where a Triton server is: in a virtual environment, or in a container of docker or podman. The fact is
    # `triton.server`.
    "RECIPE_TRITON_VENV", "DOCKER_HOST", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
})  # fmt: skip
"""The variables that every worker gets from the user, each with what keeps it from changing a result.

A step that needs another variable, or whose result depends on the value of one of these, names it in `Step.variables`.
"""

_LOCALE = "LC_ALL"
BYTECODE = "PYTHONPYCACHEPREFIX"
"""The variable that names the folder with Python's bytecode files, in place of all folders `__pycache__`.

In workers and in the programs that they start, it names a folder that cannot exist. So Python compiles the source that
lies there, of which keys are made, and reads no bytecode that may be older than the source.
"""
FIXED = {
    "TZ": "UTC",
    _LOCALE: "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    BYTECODE: os.devnull,
    "PYTHONUNBUFFERED": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_VERBOSITY": "error",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}
"""Environment variables with fixed values in every worker, unless a step names the variable in `Step.variables`.

All workers have one time zone, one locale and one order of sets; they neither read nor write `__pycache__`, and tools
are quiet.
"""


def for_worker(variables: Iterable[str] = (), environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment of a worker, including the `variables` that its steps name."""
    declared = frozenset(variables) - {BYTECODE}
    kept = {k: v for k, v in environment.items() if k in _NAMES | declared}
    names_locale = any(name.startswith(("LANG", "LC_")) for name in declared)
    free = declared | ({_LOCALE} if names_locale else set())
    return {**kept, **{k: v for k, v in FIXED.items() if k not in free}}
